/* Runs the Python code in its argument in a box, shows what it prints and what it tried.
 *	cc run.c -o run $(pkg-config --cflags --libs libpale) && ./run 'print(6 * 7)' */
#include <pale.h>
#include <string.h>

static void on_output(void *arg, enum pale_stream stream, const char *data, size_t len)
{
	(void)arg;
	fwrite(data, 1, len, stream == PALE_STDOUT ? stdout : stderr);
}

static void on_event(void *arg, const char *json)
{
	if (strstr(json, ".blocked\"") || strstr(json, "call.denied"))
		fprintf(arg, "refused: %s\n", json);
}

int main(int argc, char **argv)
{
	struct pale_command command = {.size = sizeof(command)};
	struct pale_run_options options = {.size = sizeof(options), .on_output = on_output};
	struct pale_policy *policy = NULL;
	struct pale_result *result = NULL;
	struct pale_err err;
	int status = 125;

	command.code = argc > 1 ? argv[1] : "print(6 * 7)";
	options.on_event = on_event;
	options.arg = stderr;
	if (pale_policy_new(&policy, &err) < 0 ||
	    pale_policy_set(policy, "limits.wall", "10s", &err) < 0 ||
	    pale_run(policy, &command, &options, &result, &err) < 0)
		return fprintf(stderr, "%s\n", err.message), status;
	status = pale_result_exit_status(result);
	fprintf(stderr, "%s\n", pale_result_summary(result));
	pale_result_free(result);
	pale_policy_free(policy);
	return status;
}
