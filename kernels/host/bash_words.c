/* What is under the cursor in a shell's code, and matches as a reply. Knows enough of the shell's
 * grammar to tell a command's name from an argument and from a variable; bash itself finds what
 * matches. The code is the user's, and so are the names of files. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host.h"

#define MATCHES_MAX 500
#define CODE_MAX    65536 /* bytes before the cursor that are looked at */

static size_t to_bytes(const char *code, size_t len, int32_t cursor)
{
	size_t at = 0;

	for (int32_t n = 0; at < len && (cursor < 0 || n < cursor); n++)
		for (at++; at < len && ((unsigned char)code[at] & 0xc0) == 0x80; at++)
			;
	return at;
}

static unsigned to_points(const char *code, size_t bytes)
{
	unsigned n = 0;

	for (size_t i = 0; i < bytes; i++)
		n += ((unsigned char)code[i] & 0xc0) != 0x80;
	return n;
}

static bool is_name(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* Ends a word, outside quotes. */
static bool is_break(char c)
{
	return c == '\0' || strchr(" \t\n;|&()<>`=\"'", c);
}

/* Whether a command's name can begin after this text. */
static bool before_command(const char *code, size_t len)
{
	static const char *const words[] = {"then", "do",   "else", "elif", "if", "while",  "until",
					    "!",    "sudo", "time", "exec", "{",  "command"};
	size_t start;

	while (len && (code[len - 1] == ' ' || code[len - 1] == '\t'))
		len--;
	if (!len || strchr("\n;|&(`", code[len - 1]))
		return true;
	for (start = len; start && !is_break(code[start - 1]); start--)
		;
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (strlen(words[i]) == len - start &&
		    memcmp(words[i], code + start, len - start) == 0)
			return true;
	return false;
}

bool words_find(const char *code, size_t len, int32_t cursor, bool whole, struct words *ret)
{
	size_t at = to_bytes(code, len, cursor), first = at > CODE_MAX ? at - CODE_MAX : 0, start;
	char quote = 0;

	*ret = (struct words){.end = to_points(code, at)};
	if (whole) {
		for (start = at; start > first && !is_break(code[start - 1]) &&
				 code[start - 1] != '$' && code[start - 1] != '{';
		     start--)
			;
		while (at < len && !is_break(code[at]) && code[at] != '}')
			at++;
		ret->word = strndup(code + start, at - start);
		return ret->word;
	}
	start = first;
	for (size_t i = first; i < at; i++) {
		if (code[i] == '\\' && quote != '\'' && i + 1 < at) {
			i++;
		} else if (quote) {
			if (code[i] == quote) {
				quote = 0;
				start = i + 1;
			}
		} else if (is_break(code[i])) {
			if (code[i] == '"' || code[i] == '\'')
				quote = code[i];
			start = i + 1;
		}
	}
	ret->quote = quote;
	for (size_t i = at; quote != '\'' && i-- > start;) {
		if (is_name(code[i]))
			continue;
		if (code[i] == '$' || (code[i] == '{' && i > start && code[i - 1] == '$')) {
			ret->variable = true;
			strcpy(ret->prefix, code[i] == '$' ? "$" : "${");
			start = code[i] == '$' ? i : i - 1;
		}
		break;
	}
	ret->start = to_points(code, start);
	start += strlen(ret->prefix);
	ret->command = !ret->variable && !quote && !memchr(code + start, '/', at - start) &&
		       before_command(code, start);
	/* As it is meant: without backslashes. */
	ret->word = malloc(at - start + 1);
	if (!ret->word)
		return false;
	len = 0;
	for (size_t i = start; i < at; i++) {
		if (code[i] == '\\' && quote != '\'' && i + 1 < at)
			i++;
		ret->word[len++] = code[i];
	}
	ret->word[len] = '\0';
	return true;
}

char *words_quote(const char *text)
{
	char *quoted = malloc(4 * strlen(text) + 3), *at = quoted;

	if (!quoted)
		return NULL;
	*at++ = '\'';
	for (; *text; text++) {
		if (*text == '\'') {
			memcpy(at, "'\\''", 4);
			at += 4;
		} else {
			*at++ = *text;
		}
	}
	*at++ = '\'';
	*at = '\0';
	return quoted;
}

static void add_match(struct json *j, const struct words *w, const char *match)
{
	struct json text = {0};
	char one[3] = {'\\', 0, 0};

	json_add(&text, w->prefix);
	for (; *match; match++) {
		one[1] = *match;
		if (!w->quote && !w->variable && strchr(" \t!\"#$&'()*;<=>?[\\]^`{|}", *match))
			json_add(&text, one);
		else
			json_add(&text, one + 1);
	}
	if (!text.failed)
		json_add_string(j, text.text ? text.text : "", text.len);
	free(text.text);
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

char *words_reply(const struct words *w, char *lines, size_t *ret_len)
{
	struct json j = {0};
	char **all = NULL, *save = NULL, number[64];
	size_t n = 0, size = 0, given = 0;

	for (char *line = lines ? strtok_r(lines, "\n", &save) : NULL; line;
	     line = strtok_r(NULL, "\n", &save)) {
		if (n == size) {
			char **bigger = realloc(all, (size + 256) * sizeof(*all));

			if (!bigger)
				break;
			all = bigger;
			size += 256;
		}
		all[n++] = line;
	}
	if (n)
		qsort(all, n, sizeof(*all), compare);
	json_add(&j, "{\"matches\":[");
	for (size_t i = 0; i < n && given < MATCHES_MAX; i++) {
		size_t len = strlen(all[i]);

		size_t next = i + 1;

		/* Twice, or a directory: then its name with a slash comes, too. */
		while (next < n && strncmp(all[i], all[next], len) == 0 && all[next][len] &&
		       strcmp(all[next] + len, "/") != 0)
			next++;
		if (next < n && strncmp(all[i], all[next], len) == 0)
			continue;
		if (given++)
			json_add(&j, ",");
		add_match(&j, w, all[i]);
	}
	free(all);
	json_add(&j, "],\"start\":");
	snprintf(number, sizeof(number), "%u,\"end\":%u}", w->start, w->end);
	json_add(&j, number);
	if (j.failed) {
		free(j.text);
		return NULL;
	}
	*ret_len = j.len;
	return j.text;
}
