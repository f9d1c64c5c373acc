/* The host's side of the attacks: see host.c. Weak, because a single attack has none. */
#pragma once

__attribute__((weak)) int host(int argc, char **argv);
