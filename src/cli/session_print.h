/* What an execution prints and shows, on a terminal, to files, or as JSON. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum session_form {
	SESSION_TEXT,
	SESSION_JSON,	/* one object at the end, with the result and all events */
	SESSION_STREAM, /* an object a line, as it comes */
};

struct session_print {
	enum session_form form;
	bool quiet;		 /* no lines of Pale's own */
	const char *display_dir; /* where displays are written; or NULL */
	uint32_t execution;
	json_t *events;	     /* so far; SESSION_JSON */
	json_int_t next;     /* the number of the event that comes next, unless some are left out */
	bool in_line[2];     /* what was printed last to stdout, stderr has no newline at its end */
	bool failed;	     /* stdout takes no more */
	bool display_failed; /* it was said that displays cannot be written */
};

/* The execution's number, before its first event. */
void session_print_begin(struct session_print *p, uint32_t execution);
/* What comes next to stderr begins a line. */
void session_print_end_line(struct session_print *p);
/* A line of Pale's own: escaped. */
void session_print_note(struct session_print *p, const char *text);
/* What an event that asks for input says. */
void session_print_prompt(struct session_print *p, const json_t *event);
void session_print_event(struct session_print *p, const json_t *event);
/* How it ended: lines for people on what they could not know, or the result, which is stolen.
 * run: the id of the session's run. The exit status of the execution. */
int session_print_result(struct session_print *p, json_t *result, const char *run);
/* A phrase on the files that went back with the variables, for `variables%s`; or that did not. buf:
 * SESSION_BACK bytes. */
#define SESSION_BACK 600
const char *session_print_back(const json_t *result, char *buf);
/* The exit status that says how an execution ended. */
int session_status(const json_t *result);
