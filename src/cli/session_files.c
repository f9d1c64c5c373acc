/* Files of a session's box: see session_files.h. In the caller's process, outside any box. Hostile:
 * names, sizes and contents, which the box chose. A name is only ever used as one component of a
 * path, and is checked to be that, whatever the supervisor's worker did. */
#include "cli/session_files.h"

#include <string.h>

#include "base/base64.h"
#include "base/str.h"
#include "cli/blocked.h"

#define STAGE	  "cli"
#define LIST_PAGE 1000

static int put_bytes(json_t *o, const char *key, const char *bytes, size_t len,
		     struct pale_err *err)
{
	_cleanup_free_ char *encoded = NULL;
	char other[32];

	if (!o)
		return err_nomem(err, STAGE);
	if (str_utf8_prefix(bytes, len) == len)
		return json_object_set_new(o, key, json_stringn(bytes, len)) < 0
			       ? err_nomem(err, STAGE)
			       : 0;
	snprintf(other, sizeof(other), "%s_base64", key);
	encoded = base64_encode(bytes, len);
	return !encoded || json_object_set_new(o, other, json_string(encoded)) < 0
		       ? err_nomem(err, STAGE)
		       : 0;
}

/* Bytes that stand as text, or in base64 under another key. */
static int get_bytes(const json_t *o, const char *key, char **ret, size_t *ret_len)
{
	const json_t *text = json_object_get(o, key);
	char other[32];

	snprintf(other, sizeof(other), "%s_base64", key);
	if (json_object_get(o, other))
		return base64_decode(cli_string_at(o, other), strlen(cli_string_at(o, other)), ret,
				     ret_len);
	if (!json_is_string(text))
		return -EINVAL;
	*ret_len = json_string_length(text);
	*ret = malloc(*ret_len + 1);
	if (!*ret)
		return -ENOMEM;
	memcpy(*ret, json_string_value(text), *ret_len + 1);
	return 0;
}

/* arguments are stolen. */
static int call(struct pale_session *s, const char *command, const char *path, json_t *arguments,
		json_t **ret, struct pale_err *err)
{
	int r = put_bytes(arguments, "path", path, strlen(path), err);

	if (r < 0) {
		json_decref(arguments);
		return r;
	}
	return cli_session_call(s, command, arguments, 0, ret, err);
}

static int senseless(const char *path, struct pale_err *err)
{
	return err_set(err, PALE_E_SYSTEM, STAGE, 0, "what is told of %s makes no sense",
		       QUOTED(path));
}

static void take_entry(const json_t *o, struct box_entry *ret)
{
	static const char *const types[] = {
		[BOX_FILE] = "file", [BOX_DIRECTORY] = "directory", [BOX_LINK] = "link"};
	const char *type = cli_string_at(o, "type");

	*ret = (struct box_entry){.type = BOX_OTHER,
				  .mode = (mode_t)cli_int_at(o, "mode") & 0777,
				  .size = (uint64_t)cli_int_at(o, "size")};
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (strcmp(types[i], type) == 0)
			ret->type = (enum box_type)i;
}

int box_stat(struct pale_session *s, const char *path, bool follow, struct box_entry *ret,
	     struct pale_err *err)
{
	_cleanup_json_ json_t *answer = NULL;
	int r = call(s, "files.stat", path, json_pack("{s:b}", "follow", follow), &answer, err);

	if (r == 0)
		take_entry(answer, ret);
	return r;
}

int box_read(struct pale_session *s, const char *path, uint64_t offset, char **ret, size_t *ret_len,
	     bool *ret_more, struct pale_err *err)
{
	_cleanup_json_ json_t *answer = NULL;
	const char *data;
	int r = call(s, "files.read", path,
		     json_pack("{s:I, s:i}", "offset", (json_int_t)offset, "length", BOX_CHUNK),
		     &answer, err);

	*ret = NULL;
	if (r < 0)
		return r;
	data = cli_string_at(answer, "data");
	r = base64_decode(data, strlen(data), ret, ret_len);
	*ret_more = json_is_true(json_object_get(answer, "more")) && *ret_len;
	if (r == -ENOMEM)
		return err_nomem(err, STAGE);
	return r < 0 ? senseless(path, err) : 0;
}

int box_write(struct pale_session *s, const char *path, bool first, mode_t mode, const char *data,
	      size_t len, struct pale_err *err)
{
	_cleanup_free_ char *encoded = base64_encode(data, len);
	json_t *o;

	if (!encoded)
		return err_nomem(err, STAGE);
	o = json_pack("{s:s}", "data", encoded);
	if (first)
		json_object_set_new(o, "mode", json_integer(mode & 0777));
	else
		json_object_set_new(o, "append", json_true());
	return call(s, "files.write", path, o, NULL, err);
}

int box_link(struct pale_session *s, const char *path, const char *target, struct pale_err *err)
{
	json_t *o = json_pack("{s:b}", "replace", 1);
	int r = put_bytes(o, "target", target, strlen(target), err);

	if (r < 0) {
		json_decref(o);
		return r;
	}
	return call(s, "files.link", path, o, NULL, err);
}

int box_mkdir(struct pale_session *s, const char *path, mode_t mode, struct pale_err *err)
{
	struct box_entry there;
	struct pale_err ignored;
	int r = call(s, "files.mkdir", path, json_pack("{s:i}", "mode", (int)(mode & 0777)), NULL,
		     err);

	if (r < 0 && err->code == PALE_E_CONFLICT &&
	    box_stat(s, path, true, &there, &ignored) == 0 && there.type == BOX_DIRECTORY)
		return 0;
	return r;
}

static bool is_name(const char *name, size_t len)
{
	return len && strlen(name) == len && !strchr(name, '/') && strcmp(name, ".") != 0 &&
	       strcmp(name, "..") != 0;
}

/* One page; *after: the last name, for the next one, or NULL: there is none. */
static int list_page(struct pale_session *s, const char *path, char **after,
		     int (*fn)(void *arg, const char *name, const struct box_entry *entry),
		     void *arg, struct pale_err *err)
{
	_cleanup_json_ json_t *answer = NULL;
	json_t *o = json_pack("{s:i}", "limit", LIST_PAGE), *entry;
	size_t i;
	int r = *after ? put_bytes(o, "after", *after, strlen(*after), err) : 0;

	if (r < 0) {
		json_decref(o);
		return r;
	}
	r = call(s, "files.list", path, o, &answer, err);
	free(take_ptr(*after));
	if (r < 0)
		return r;
	json_array_foreach(json_object_get(answer, "entries"), i, entry)
	{
		struct box_entry e;
		char *name = NULL;
		size_t len = 0;

		if (get_bytes(entry, "name", &name, &len) < 0 || !is_name(name, len)) {
			free(name);
			return senseless(path, err);
		}
		free(*after);
		*after = name;
		take_entry(entry, &e);
		if (e.type == BOX_LINK && get_bytes(entry, "target", &e.target, &len) == -ENOMEM)
			return err_nomem(err, STAGE);
		r = fn(arg, name, &e);
		free(e.target);
		if (r != 0)
			return r;
	}
	if (!json_is_true(json_object_get(answer, "more")))
		free(take_ptr(*after));
	return 0;
}

int box_list(struct pale_session *s, const char *path,
	     int (*fn)(void *arg, const char *name, const struct box_entry *entry), void *arg,
	     struct pale_err *err)
{
	_cleanup_free_ char *after = NULL;
	int r;

	do
		r = list_page(s, path, &after, fn, arg, err);
	while (r == 0 && after);
	return r;
}
