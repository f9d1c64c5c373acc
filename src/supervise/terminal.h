/* The caller's terminal while a box has a pty: raw, its size passed on, restored at the end. */
#pragma once

#include <stdbool.h>
#include <termios.h>

struct terminal {
	int fd; /* borrowed; -1: the caller has none */
	bool raw;
	struct termios before;
};

/* If in is a terminal: makes it raw, so that every key, Ctrl-C too, goes to the box. */
void terminal_enter(struct terminal *t, int in);
void terminal_leave(struct terminal *t);
/* Gives the pty the size of the caller's terminal. */
void terminal_copy_size(const struct terminal *t, int master);
void terminal_resize(int master, unsigned short rows, unsigned short columns);
