/* Holds a Python session: each line of standard input is executed in it, and what it prints and the
 * value of its last expression come back. One that takes longer than two seconds is ended, and the
 * session goes on.
 *	cc session.c -o session $(pkg-config --cflags --libs libpale -ljansson) */
#include <jansson.h>
#include <pale.h>
#include <string.h>

static const char *text_at(const json_t *o, const char *key)
{
	const char *text = json_string_value(json_object_get(o, key));

	return text ? text : "";
}

/* What comes from the box may be anything: here it is only passed on. */
static int on_event(void *arg, const char *line)
{
	json_t *event = json_loads(line, JSON_ALLOW_NUL, NULL);
	const char *type = text_at(event, "type");

	(void)arg;
	if (strcmp(type, "stdout") == 0)
		fputs(text_at(event, "text"), stdout);
	else if (strcmp(type, "result") == 0)
		puts(text_at(json_object_get(event, "data"), "text/plain"));
	else if (strcmp(type, "error") == 0)
		printf("%s: %s\n", text_at(event, "name"), text_at(event, "message"));
	json_decref(event);
	return 0;
}

static int execute(struct pale_session *s, const char *code, struct pale_err *err)
{
	struct pale_exec_options options = {
		.size = sizeof(options), .timeout_ms = 2000, .on_event = on_event};
	char *text;
	json_t *result;

	if (pale_session_exec(s, code, strlen(code), &options, &text, err) < 0)
		return -1;
	result = json_loads(text, JSON_ALLOW_NUL, NULL);
	printf("-- %s, variables: %s\n", text_at(result, "outcome"), text_at(result, "state"));
	json_decref(result);
	free(text);
	return fflush(stdout);
}

int main(void)
{
	struct pale_session_options options = {.size = sizeof(options)};
	struct pale_policy *policy = NULL;
	struct pale_session *session = NULL;
	struct pale_err err;
	char line[65536];
	int r = 0;

	if (pale_policy_new(&policy, &err) < 0 ||
	    pale_policy_set(policy, "limits.memory", "256MiB", &err) < 0 ||
	    pale_session_start(policy, &options, &session, &err) < 0)
		return fprintf(stderr, "%s\n", err.message), 1;
	while (r == 0 && fgets(line, sizeof(line), stdin))
		r = execute(session, line, &err);
	if (r == 0)
		r = pale_session_call(session, "box.destroy", NULL, 0, NULL, &err);
	if (r < 0)
		fprintf(stderr, "%s\n", err.message);
	pale_session_close(session);
	pale_policy_free(policy);
	return r < 0;
}
