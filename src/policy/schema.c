/* The JSON Schema (draft 2020-12) of a policy, from the options table. What a schema cannot say
 * (the bounds of "512MiB") stands in the descriptions; the loader is the authority. */
#include "policy/policy.h"

#include <jansson.h>
#include <string.h>

#include "policy/options.h"

#define SIZE_PATTERN  "^[0-9]+(\\.[0-9]+)? *(B|[KMGT]|k|[KMGT]iB|k?B|[KMGT]B)?$"
#define TIME_PATTERN  "^[0-9]+(\\.[0-9]+)? *(ms|s|m|min|h)?$"
#define MILLI_PATTERN "^[0-9]+(\\.[0-9]{1,3})?$"
#define COUNT_PATTERN "^[0-9]+$"

/* A text, or {hex: "..."} for one that is not UTF-8. */
static json_t *text_schema(void)
{
	return json_pack("{s:[{s:s,s:i},{s:s,s:{s:{s:s,s:s,s:s}},s:[s],s:b}]}", "anyOf", "type",
			 "string", "minLength", 1, "type", "object", "properties", "hex", "type",
			 "string", "pattern", "^([0-9a-f]{2})+$", "description",
			 "the bytes of a name that is not UTF-8", "required", "hex",
			 "additionalProperties", 0);
}

static json_t *number_schema(const char *pattern, bool fraction)
{
	return json_pack("{s:[s,s],s:s,s:i}", "type", "string", fraction ? "number" : "integer",
			 "pattern", pattern, "minimum", 0);
}

static json_t *words_schema(const struct policy_option *o)
{
	json_t *list = json_array();
	int r = 0;

	for (const struct option_word *w = o->words; w->word; w++)
		r |= json_array_append_new(
			list, json_pack("{s:s,s:s}", "const", w->word, "description", w->doc));
	if (r == 0)
		return json_pack("{s:o}", "oneOf", list);
	json_decref(list);
	return NULL;
}

static json_t *group_schema(const char *group);
static json_t *entry_schema(const struct option_list *list);

/* One text of a row. */
static json_t *value_of_texts(const struct policy_option *o)
{
	json_t *j = o->numbers ? json_pack("{s:[s,s]}", "type", "string", "integer")
			       : json_pack("{s:s}", "type", "string");
	int r = json_object_set_new(j, "minLength", json_integer(1));

	if (o->pattern)
		r |= json_object_set_new(j, "pattern", json_string(o->pattern));
	if (r == 0)
		return j;
	json_decref(j);
	return NULL;
}

/* A list of such items, or, where the row takes one, also one that stands alone. Takes item over.
 */
static json_t *list_schema(const struct policy_option *o, json_t *item)
{
	bool single = o->single || o->type == OPTION_TEXTS || o->type == OPTION_PATHS;
	json_t *list = json_pack("{s:s,s:O}", "type", "array", "items", item);

	/* An empty list in an entry is refused: see load_plain(). */
	if (strchr(o->key, '['))
		json_object_set_new(list, "minItems", json_integer(1));
	if (single)
		list = json_pack("{s:[O,o]}", "anyOf", item, list);
	json_decref(item);
	return list;
}

static json_t *value_schema(const struct policy_option *o)
{
	json_t *words = NULL;

	switch (o->type) {
	case OPTION_VERSION: return json_pack("{s:i}", "const", 1);
	case OPTION_SIZE: return number_schema(SIZE_PATTERN, false);
	case OPTION_TIME:
		return number_schema(o->never ? "^never$|" TIME_PATTERN : TIME_PATTERN, true);
	case OPTION_MILLI: return number_schema(MILLI_PATTERN, true);
	case OPTION_COUNT: return number_schema(COUNT_PATTERN, false);
	case OPTION_PATH: return text_schema();
	case OPTION_WORD: return words_schema(o);
	case OPTION_WORDS: return list_schema(o, words_schema(o));
	case OPTION_TEXT:
		if (!o->words)
			return value_of_texts(o);
		words = words_schema(o);
		return json_pack("{s:[O,{s:s,s:o,s:i}]}", "anyOf", words, "type", "array", "items",
				 words, "minItems", 1);
	case OPTION_GROUP: return group_schema(o->key);
	case OPTION_BOOL: return json_pack("{s:s}", "type", "boolean");
	case OPTION_TEXTS: return list_schema(o, value_of_texts(o));
	case OPTION_PATHS: return list_schema(o, text_schema());
	case OPTION_LIST: return list_schema(o, entry_schema(o->list));
	case OPTION_ENV:
		return json_pack("{s:s,s:{s:s},s:{s:[{s:[s,s,s]},o]}}", "type", "object",
				 "propertyNames", "pattern", "^(?!PALE_)[A-Za-z_][A-Za-z0-9_]*$",
				 "additionalProperties", "anyOf", "type", "string", "number",
				 "boolean", text_schema());
	}
	return NULL;
}

static json_t *default_of(const struct policy_option *o)
{
	if (o->type == OPTION_VERSION || o->type == OPTION_COUNT)
		return json_loads(o->def, JSON_DECODE_ANY, NULL);
	return json_string(o->def);
}

/* The sentences of the row, with what the schema's own words cannot say. */
static json_t *description_of(const struct policy_option *o)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4096);

	buf_adds(&b, o->doc);
	if (o->min && o->max)
		buf_addf(&b, " From %s to %s.", o->min, o->max);
	if (o->item)
		buf_addf(&b, " best_effort may name it.");
	return b.failed ? NULL : json_string(b.data);
}

static json_t *group_schema(const char *group)
{
	json_t *properties = json_object(), *required = json_array(), *j;
	int r = 0;

	for (const struct policy_option *o = policy_options; o->key; o++) {
		json_t *value;

		if (!option_in_group(o, group))
			continue;
		value = value_schema(o);
		r |= json_object_set_new(value, "description", description_of(o));
		if (o->def)
			r |= json_object_set_new(value, "default", default_of(o));
		if (o->type == OPTION_VERSION)
			r |= json_array_append_new(required, json_string(o->key));
		r |= json_object_set_new(properties, option_name(o), value);
	}
	j = json_pack("{s:s,s:o,s:b}", "type", "object", "properties", properties,
		      "additionalProperties", 0);
	if (json_array_size(required))
		r |= json_object_set(j, "required", required);
	json_decref(required);
	if (r == 0)
		return j;
	json_decref(j);
	return NULL;
}

/* {"required": [WORD]} for each of blank-separated words, or the words themselves. */
static json_t *required_of(const char *words, bool each)
{
	json_t *list = json_array();

	for (const char *at = words; *at; at += strcspn(at, " "), at += strspn(at, " ")) {
		json_t *word = json_stringn(at, strcspn(at, " "));

		if (json_array_append_new(list, each ? json_pack("{s:[o]}", "required", word)
						     : word) < 0) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}

static json_t *entry_schema(const struct option_list *list)
{
	json_t *j = group_schema(list->entries);
	int r = 0;

	if (list->one_of)
		r |= json_object_set_new(j, "anyOf", required_of(list->one_of, true));
	if (list->needs)
		r |= json_object_set_new(j, "required", required_of(list->needs, false));
	if (r == 0)
		return j;
	json_decref(j);
	return NULL;
}

int policy_schema_json(char **ret, struct pale_err *err)
{
	json_t *j = json_pack(
		"{s:s,s:s,s:s}", "$schema", "https://json-schema.org/draft/2020-12/schema", "title",
		"A policy of Pale", "description",
		"What a sandbox may touch. What is absent is denied, or limited by the "
		"default.");
	json_t *root = group_schema("");
	_cleanup_free_ char *text = NULL;
	int r = json_object_update(j, root);

	json_decref(root);
	if (r == 0)
		text = json_dumps(j, JSON_INDENT(2));
	json_decref(j);
	if (!text || asprintf(ret, "%s\n", text) < 0)
		return err_nomem(err, "policy");
	return 0;
}
