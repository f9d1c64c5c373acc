/* A supervisor that only waits keeps little memory. */
#pragma once

/* Gives back what starting a box took and waiting does not need: free heap, and the mapped pages of
 * the program itself (clean pages of a file, which come back by themselves when they are used). For
 * a process that does nothing else. */
void trim_memory(void);
