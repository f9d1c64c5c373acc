/* Whether a piece of code goes on in the next line: see session_lines.h. In the caller's process;
 * the code is the caller's own. What is judged wrongly is told by the interpreter: nothing depends
 * on it but when a line is sent. */
#include "cli/session_lines.h"

#include <string.h>

struct scan {
	const char *code;
	size_t at, len;
	int depth;   /* of brackets */
	bool open;   /* a text, a comment, a here-document does not end */
	bool joined; /* the last line ends with a backslash */
};

static char peek(const struct scan *s, size_t ahead)
{
	return s->at + ahead < s->len ? s->code[s->at + ahead] : '\0';
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static bool looking_at(const struct scan *s, const char *what)
{
	size_t n = strlen(what);

	return s->at + n <= s->len && memcmp(s->code + s->at, what, n) == 0;
}

static void skip_line(struct scan *s)
{
	while (s->at < s->len && s->code[s->at] != '\n')
		s->at++;
}

/* A text that ends with `end`, behind its beginning. lines: it may have several. */
static void skip_text(struct scan *s, const char *end, bool escapes, bool lines)
{
	while (s->at < s->len) {
		if (looking_at(s, end)) {
			s->at += strlen(end);
			return;
		}
		if (s->code[s->at] == '\n' && !lines)
			return;
		if (s->code[s->at] == '\\' && escapes) {
			s->at++;
			/* Where it stands at the very end, the next line belongs to the text. */
			if (s->at == s->len)
				s->joined = true;
		}
		if (s->at < s->len)
			s->at++;
	}
	s->open |= lines;
}

static void take_bracket(struct scan *s, char c)
{
	if (strchr("([{", c))
		s->depth++;
	else if (s->depth)
		s->depth--;
}

/* ---- Python ---- */

struct python_line {
	bool indented, decorator, colon, any;
};

static void skip_python_text(struct scan *s)
{
	char quote = s->code[s->at];
	char end[4] = {quote, quote, quote, '\0'};
	bool triple = peek(s, 1) == quote && peek(s, 2) == quote;

	if (!triple)
		end[1] = '\0';
	s->at += triple ? 3 : 1;
	skip_text(s, end, true, triple);
}

/* IPython's own lines: a command is no Python, and what begins with %% goes on. */
static bool take_magic(struct scan *s, struct python_line *line)
{
	if (s->depth || line->any || (s->code[s->at] != '%' && s->code[s->at] != '!'))
		return false;
	line->colon = looking_at(s, "%%");
	line->any = true;
	skip_line(s);
	return true;
}

static bool python_open(struct scan *s, bool magic)
{
	struct python_line line = {0};
	bool cell = false, empty = true; /* the last line */

	while (s->at < s->len) {
		char c = s->code[s->at];

		s->joined = false;
		if (c == '\n') {
			s->at++;
			empty = true;
			if (!s->depth && line.any) {
				cell |= magic && line.colon;
				line.any = false;
			}
			continue;
		}
		if (is_blank(c)) {
			s->at++;
			continue;
		}
		empty = false;
		if (c == '#') {
			skip_line(s);
			continue;
		}
		if (!line.any && !s->depth)
			line = (struct python_line){
				.indented = s->at && is_blank(s->code[s->at - 1]),
				.decorator = c == '@',
			};
		if (magic && take_magic(s, &line))
			continue;
		line.any = true;
		line.colon = c == ':' && !s->depth;
		if (c == '"' || c == '\'') {
			skip_python_text(s);
		} else if (c == '\\' && (s->at + 1 == s->len || peek(s, 1) == '\n')) {
			s->joined = s->at + 1 == s->len;
			s->at += s->joined ? 1 : 2;
		} else {
			if (strchr("()[]{}", c))
				take_bracket(s, c);
			s->at++;
		}
	}
	if (s->depth || s->open || s->joined)
		return true;
	return !empty && (line.colon || line.indented || line.decorator || cell);
}

/* ---- JavaScript ---- */

/* A regular expression, and no division: by what stands before it. */
static bool begins_regex(char before)
{
	return !before || strchr("(,=:[!&|?{};+-*%<>~^\n", before);
}

static void skip_regex(struct scan *s)
{
	bool class = false;

	for (s->at++; s->at < s->len && s->code[s->at] != '\n'; s->at++) {
		char c = s->code[s->at];

		if (c == '\\')
			s->at++;
		else if (c == '[')
			class = true;
		else if (c == ']')
			class = false;
		else if (c == '/' && !class) {
			s->at++;
			return;
		}
	}
}

static bool node_open(struct scan *s)
{
	char before = '\0';

	while (s->at < s->len) {
		char c = s->code[s->at];

		if (looking_at(s, "//")) {
			skip_line(s);
		} else if (looking_at(s, "/*")) {
			s->at += 2;
			skip_text(s, "*/", false, true);
		} else if (c == '/' && begins_regex(before)) {
			skip_regex(s);
			before = '/';
		} else if (c == '"' || c == '\'' || c == '`') {
			char end[2] = {c, '\0'};

			s->at++;
			skip_text(s, end, true, c == '`');
			before = c;
		} else {
			if (strchr("()[]{}", c))
				take_bracket(s, c);
			if (!is_blank(c))
				before = c;
			s->at++;
		}
	}
	return s->depth || s->open || s->joined;
}

/* ---- the shell ---- */

#define HEREDOCS 8

struct shell {
	struct scan s;
	int blocks;	    /* if, case, for, while, {: until their end */
	bool command;	    /* a command may begin here, and with it a keyword */
	bool operator_last; /* |, && or || */
	struct {
		char word[64];
		bool tabs;
	} documents[HEREDOCS];
	size_t ndocuments;
};

/* The word that ends a here-document, without its quotes. */
static void take_heredoc(struct shell *h)
{
	struct scan *s = &h->s;
	size_t n = 0;
	char *word;

	s->at += 2;
	if (h->ndocuments == HEREDOCS)
		return;
	word = h->documents[h->ndocuments].word;
	h->documents[h->ndocuments].tabs = peek(s, 0) == '-';
	if (h->documents[h->ndocuments].tabs)
		s->at++;
	while (is_blank(peek(s, 0)))
		s->at++;
	while (s->at < s->len && !strchr(" \t\n;&|()<>", s->code[s->at])) {
		if (!strchr("'\"\\", s->code[s->at]) && n < sizeof(h->documents->word) - 1)
			word[n++] = s->code[s->at];
		s->at++;
	}
	word[n] = '\0';
	if (n)
		h->ndocuments++;
}

/* The documents that the line before asked for. */
static void skip_heredocs(struct shell *h)
{
	struct scan *s = &h->s;

	for (size_t i = 0; i < h->ndocuments; i++) {
		const char *word = h->documents[i].word;
		bool found = false;

		while (s->at < s->len && !found) {
			size_t begin = s->at, n;

			skip_line(s);
			n = s->at - begin;
			while (h->documents[i].tabs && n && s->code[begin] == '\t') {
				begin++;
				n--;
			}
			found = n == strlen(word) && memcmp(s->code + begin, word, n) == 0;
			if (s->at < s->len)
				s->at++;
		}
		s->open |= !found;
	}
	h->ndocuments = 0;
}

static bool is_one_of(const char *word, size_t len, const char *const *words)
{
	for (; *words; words++)
		if (strlen(*words) == len && memcmp(*words, word, len) == 0)
			return true;
	return false;
}

static void take_word(struct shell *h)
{
	static const char *const begin[] = {"if",    "case",   "for", "while",
					    "until", "select", "{",   NULL};
	static const char *const end[] = {"fi", "esac", "done", "}", NULL};
	static const char *const before_command[] = {"if", "then", "else", "elif", "while", "until",
						     "do", "{",	   "!",	   "time", NULL};
	struct scan *s = &h->s;
	const char *word = s->code + s->at;
	size_t len;
	bool first = h->command;

	while (s->at < s->len && !strchr(" \t\r\n;&|()<>'\"`\\$", s->code[s->at]))
		s->at++;
	len = (size_t)(s->code + s->at - word);
	h->command = false;
	if (!first || !len)
		return;
	if (is_one_of(word, len, begin))
		h->blocks++;
	else if (is_one_of(word, len, end) && h->blocks)
		h->blocks--;
	h->command = is_one_of(word, len, before_command);
}

static void take_operator(struct shell *h, char c)
{
	struct scan *s = &h->s;

	if (c == '(' || c == ')')
		take_bracket(s, c);
	h->command = !strchr("<>", c);
	h->operator_last = c == '|' || (c == '&' && peek(s, 1) == '&');
	s->at += (c == '&' || c == '|') && peek(s, 1) == c ? 2 : 1;
}

/* Where the line, or a word, may end. */
static void take_shell(struct shell *h)
{
	struct scan *s = &h->s;
	char c = s->code[s->at];

	if (is_blank(c)) {
		s->at++;
		return;
	}
	if (c == '\n') {
		s->at++;
		h->command = true;
		skip_heredocs(h);
		return;
	}
	if (c == '#' && (!s->at || strchr(" \t\n;&|(", s->code[s->at - 1]))) {
		skip_line(s);
		return;
	}
	if (strchr(";&|()", c)) {
		take_operator(h, c);
		return;
	}
	h->operator_last = false;
	if (looking_at(s, "<<<")) {
		s->at += 3;
	} else if (looking_at(s, "<<")) {
		take_heredoc(h);
	} else if (strchr("<>", c)) {
		take_operator(h, c);
	} else if (c == '\\') {
		s->joined = s->at + 1 == s->len;
		s->at += s->joined ? 1 : 2;
	} else if (strchr("'\"`", c)) {
		char end[2] = {c, '\0'};

		s->at++;
		h->command = false;
		skip_text(s, end, c != '\'', true);
	} else if (c == '$') {
		s->at += peek(s, 1) == '{' || peek(s, 1) == '#' ? 2 : 1;
		h->command = false;
		if (s->at < s->len && s->code[s->at - 1] == '{')
			skip_text(s, "}", true, true);
	} else {
		take_word(h);
	}
}

static bool bash_open(const struct scan *whole)
{
	struct shell h = {.s = *whole, .command = true};

	while (h.s.at < h.s.len) {
		h.s.joined = false;
		take_shell(&h);
	}
	return h.s.depth || h.s.open || h.s.joined || h.blocks || h.operator_last || h.ndocuments;
}

bool session_lines_open(const char *kernel, const char *code, size_t len)
{
	struct scan s = {.code = code, .len = len};

	if (strcmp(kernel, "bash") == 0)
		return bash_open(&s);
	if (strcmp(kernel, "node") == 0)
		return node_open(&s);
	return python_open(&s, strcmp(kernel, "ipython") == 0);
}
