/* What the parts of the kernel host share: see main.c. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define MESSAGE_MAX (16u << 20)

enum kind {
	EXECUTE = 1,
	UNDO = 2,
	COMPLETE = 3,
	INSPECT = 4,
	INPUT = 5,
	RESTART = 6,
	READY = 16,
	STARTED = 17,
	DATA = 18,
	REPLY = 19,
	ERROR = 20,
	DONE = 21,
	BACK = 22,
	INPUT_WANTED = 23,
	NOTE = 24,
	REFUSED = 25,
	/* Never on the channel: the host to the driver of node. */
	INTERRUPT = 64,
};

enum done { OK = 0, FAILED = 1, INTERRUPTED = 2, ENDED = 3 };

/* A message from the supervisor; data ends with a NUL that does not count. */
struct message {
	uint8_t kind;
	uint32_t id;
	int32_t value;
	char *data;
	size_t len, size;
};

/* Memory that the host shares with its levers, and as a file with the driver of node, which writes
 * to armed and done and reads what is between them: at these offsets. */
struct page {
	_Atomic uint32_t armed;	  /* execution whose interpreter may get a SIGINT now, or 0 */
	_Atomic uint32_t busy[3]; /* a signal is on its way to it: from a lever, the host */
	_Atomic uint32_t sent;	  /* signals */
	_Atomic uint32_t wanted;  /* execution that is to be interrupted */
	_Atomic uint32_t done;	  /* execution of which node has told the end */
	_Atomic int32_t target;	  /* a process; negative: a process group */
	_Atomic uint32_t lever;	  /* that of the execution: the other one does nothing */
	_Atomic uint32_t running; /* the execution under way */
	_Atomic int32_t exec_errno;
};
#define PAGE_BYTES 4096

struct host;

/* What differs between interpreters. */
struct interpreter {
	const char *name, *what; /* for people */
	const char *how_it_ends;
	/* In the child: descriptors in place, then exec; returns if that fails. */
	void (*exec)(struct host *h, int commands, int reports);
	/* In the host, once it runs; NULL: nothing. */
	void (*started)(struct host *h);
	void (*execute)(struct host *h, const struct message *m);
	/* COMPLETE, INSPECT, INPUT. */
	void (*ask)(struct host *h, const struct message *m);
	/* Something on h->reports. */
	void (*report)(struct host *h, char *text, size_t len);
	/* A SIGINT has come for what runs (again, from time to time, until it has ended). */
	void (*interrupt)(struct host *h, unsigned times);
	/* Whether what ran has been told as done although nobody said so to us. */
	bool (*done)(struct host *h);
	/* What runs has been asked for its end by a SIGKILL, and children that it waited for have
	 * been killed; should the interpreter itself go too? */
	bool (*must_die)(struct host *h);
	/* The process in the interpreter's tree: one of those that it waits for? */
	bool (*in_foreground)(struct host *h, pid_t child);
};

extern const struct interpreter interpreter_node, interpreter_bash;

struct host {
	const struct interpreter *kind;
	char **argv; /* "pale-kernel", kernel, program, driver */
	int channel, events, page_fd, signal_fd;
	struct page *page;
	pid_t lever[2], interpreter;
	int commands, reports; /* pipes to and from the interpreter */
	char *queue;	       /* for commands */
	size_t queued, sent;
	bool up;	      /* the interpreter takes messages */
	bool ready;	      /* READY was said */
	unsigned early;	      /* interpreters that died before they were up */
	struct message in;    /* being received */
	bool coming, holding; /* a message came before the interpreter was up */
	char note[320];	      /* for the next execution */

	uint32_t running; /* execution, or 0 */
	uint64_t started_ticks;
	pid_t before[256]; /* children of the interpreter that were there before, as far as known */
	size_t nbefore;
	unsigned signalled; /* how often a SIGINT has come for it */
	uint64_t signalled_ticks;
	bool forced; /* a SIGKILL has come for it */
	uint64_t forced_ms;
	unsigned rounds;
	uint64_t timer_ms; /* 0: none */
	uint32_t request;  /* COMPLETE or INSPECT under way: its id */
	uint8_t request_kind;
	bool returning; /* BACK is to be said once the interpreter is up */
	uint32_t back_id;
	int32_t back_status;
	void *own; /* the interpreter's part */
};

/* ---- main.c ---- */
_Noreturn void die(const char *what, int error);
uint64_t now_ms(void);
/* More for the interpreter: bounded by what a message may have. */
void host_queue(struct host *h, const void *data, size_t len);
/* The interpreter is ready for messages; banner: for READY. */
void host_up(struct host *h, const char *banner);
void host_done(struct host *h, enum done how, int status);
void host_timer(struct host *h, unsigned ms);
/* A SIGINT for the interpreter, if it is armed for this execution; 0: for any. */
bool page_signal(struct page *p, unsigned who, uint32_t id);
/* No signal comes any more, and none is on its way. */
void page_disarm(struct page *p);

/* ---- channel.c ---- */
void channel_send(struct host *h, uint8_t kind, uint32_t id, int32_t value, const char *key,
		  const void *data, size_t len);
void channel_say(struct host *h, uint8_t kind, uint32_t id, const char *text);
/* One packet; true: a whole message is in h->in. */
bool channel_receive(struct host *h);
void message_free(struct message *m);

/* ---- lever.c ---- */
pid_t lever_start(struct host *h, unsigned which);

/* ---- tree.c ---- */
/* Boot time in the unit of /proc's start times. */
uint64_t tree_now_ticks(void);
/* Notes which children the interpreter has: start times tell that to a hundredth of a second only.
 */
void tree_note_children(struct host *h);
/* Signals what descends from the interpreter through children that started at since_ticks or later,
 * were not noted, and, with foreground, that it waits for. */
void tree_signal(struct host *h, uint64_t since_ticks, bool foreground, int signal_number);
/* Kills all that descends from us but for the levers, and reaps. */
void tree_kill_all(struct host *h);
/* How many processes of former interpreters still run. */
unsigned tree_left(struct host *h);

/* ---- json.c ---- */
struct json {
	char *text;
	size_t len, size;
	bool failed;
};
void json_add(struct json *j, const char *text);
void json_add_string(struct json *j, const char *text, size_t len);

/* ---- bash_words.c ---- */
/* What is asked about: the command lines for bash, and how its answers become a reply. */
struct words {
	char prefix[4];	     /* goes before each match */
	char *word;	     /* malloc'd */
	unsigned start, end; /* code points */
	char quote;	     /* that it is within, or 0 */
	bool command, variable;
};
bool words_find(const char *code, size_t len, int32_t cursor, bool whole, struct words *ret);
/* 'text' for the shell; malloc'd. */
char *words_quote(const char *text);
/* Lines of matches to the JSON of a reply; malloc'd. */
char *words_reply(const struct words *w, char *lines, size_t *ret_len);
