/* What the files about zygotes share outside the boxes. */
#pragma once

#include "isolation/isolation.h"
#include "isolation/zygote.h"

struct zygote {
	struct box box; /* its own; control_fd is what keeps its first process */
	int request_fd; /* to the zygote */
	int output_fd;	/* what it prints until it is ready */
	int init_fd;	/* the sealed first process of all its boxes */
};
