/* Parents that wait in vfork() for children that do the same. */
#include <unistd.h>

int main(void)
{
	fork();
	fork();
	/* The child goes on in this loop, on its parent's stack. */
	for (;;)
		if (vfork() < 0)
			pause();
}
