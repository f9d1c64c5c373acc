/* The commands of the control protocol for the files of a running box: files.*. */
#pragma once

#include "supervise/door.h"

int door_files_list(struct door_call *call, json_t **ret, struct pale_err *err);
int door_files_stat(struct door_call *call, json_t **ret, struct pale_err *err);
int door_files_read(struct door_call *call, json_t **ret, struct pale_err *err);
int door_files_write(struct door_call *call, json_t **ret, struct pale_err *err);
int door_files_mkdir(struct door_call *call, json_t **ret, struct pale_err *err);
int door_files_link(struct door_call *call, json_t **ret, struct pale_err *err);
int door_files_remove(struct door_call *call, json_t **ret, struct pale_err *err);

/* What a worker's answer comes to, as JSON; NULL, and err: it was refused, or makes no sense. */
json_t *door_files_result(const struct plan *plan, const struct inside_request *q,
			  const struct inside_answer *a, const char *data, struct pale_err *err);
/* Bytes of the box's as JSON, and the name of a file's type. */
int door_files_put(json_t *o, const char *key, const char *data, size_t len);
const char *door_files_type(uint32_t mode);
/* inside_config.done: answers the client. */
void door_files_done(void *client, const struct inside_request *q, const struct inside_answer *a,
		     const char *data, const struct pale_err *err);
