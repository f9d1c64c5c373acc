/* The caller's terminal: see terminal.h. In the supervisor. */
#include "terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

void terminal_enter(struct terminal *t, int in)
{
	struct termios raw;

	*t = (struct terminal){.fd = -1};
	if (in < 0 || tcgetattr(in, &t->before) < 0)
		return;
	t->fd = in;
	raw = t->before;
	cfmakeraw(&raw);
	t->raw = tcsetattr(in, TCSADRAIN, &raw) == 0;
}

void terminal_leave(struct terminal *t)
{
	if (t->raw)
		tcsetattr(t->fd, TCSADRAIN, &t->before);
	t->raw = false;
}

void terminal_copy_size(const struct terminal *t, int master)
{
	struct winsize size;

	if (t->fd >= 0 && master >= 0 && ioctl(t->fd, TIOCGWINSZ, &size) == 0)
		ioctl(master, TIOCSWINSZ, &size);
}

void terminal_resize(int master, unsigned short rows, unsigned short columns)
{
	struct winsize size = {.ws_row = rows, .ws_col = columns};

	if (master >= 0)
		ioctl(master, TIOCSWINSZ, &size);
}
