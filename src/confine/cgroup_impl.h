/* What cgroup.c, cgroup_freeze.c, cgroup_v1.c, cgroup_v2.c and cgroup_systemd.c share; for nobody
 * else but the tests. */
#pragma once

#include "confine/cgroup.h"

#include <limits.h>

/* Where the probe looks; the tests give it a tree of their own. */
struct cgroup_source {
	const char *self_cgroup;    /* /proc/self/cgroup */
	const char *self_mountinfo; /* /proc/self/mountinfo */
	const char *systemd;	    /* exists where systemd is pid 1: /run/systemd/system */
	const char *swaps;	    /* /proc/swaps */
	const char *runtime_dir;    /* the user's, or NULL: /run/user/UID */
	uid_t uid;
};

void cgroup_probe_at(const struct cgroup_source *src, struct cgroup_host *ret);

/* One hierarchy as this process sees it. */
struct cgroup_place {
	char dir[PATH_MAX]; /* this process's own group; "" if the hierarchy is not mounted */
	size_t mount_len;   /* the part of dir that is the mount point */
	bool listed;	    /* /proc/self/cgroup knows of it */
};

/* Everything that /proc/self says: v2 and the v1 controllers. */
struct cgroup_places {
	struct cgroup_place v2;
	struct cgroup_place v1[CGROUP_V1_COUNT];
};

int cgroup_places_read(const struct cgroup_source *src, struct cgroup_places *ret);

struct cgroup_ops {
	int (*attach_begin)(struct cgroup *g, pid_t pid, struct pale_err *err);
	int (*attach_end)(struct cgroup *g, struct pale_err *err); /* or NULL */
	int (*usage)(struct cgroup *g, struct cgroup_usage *ret, struct pale_err *err);
	uint64_t (*throttled_us)(const struct cgroup *g);
	void (*watch)(
		struct cgroup *g); /* makes event_fd, if that was put off until it is wanted */
	void (*stop_forks)(
		struct cgroup *g); /* so that killing comes to an end; may kill by itself */
};

#define CGROUP_PATH 360

struct cgroup {
	const struct cgroup_ops *ops;
	enum cgroup_kind kind;
	struct cgroup_limits limits;
	/* The directories: one for v2, for v1 one a hierarchy; group[of[controller]]. */
	size_t ngroups;
	struct cgroup_dir {
		char path[CGROUP_PATH];
		int join_fd; /* v1: its `tasks` file, or -1 */
		bool made;
	} group[CGROUP_V1_COUNT];
	int of[CGROUP_V1_COUNT]; /* v1: -1 where the controller is not used */
	int clone_fd;		 /* v2 */
	int event_fd;		 /* v1: eventfd; v2: an epoll set of watch_fd */
	int watch_fd;		 /* v2: memory.events */
	int bus_fd;		 /* systemd: the connection over which the scope is asked for */
	char unit[80];		 /* systemd: the scope's name */
	bool bus_direct;	 /* it is systemd's own socket, without a bus in between */
	uint32_t serial, start_serial;
	uint64_t slice_kills; /* systemd: OOM kills in the slice before this box */
	bool frozen;	      /* or is being */
	bool has_last;
	struct cgroup_usage last; /* the figures before the group went away */
};

/* Lets go on what is frozen in this directory, if anything; after SIGKILL was sent to all in it, so
 * that it does nothing more than die. */
void cgroup_thaw_dir(const char *dir);
/* Likewise the whole box, if it is frozen. */
void cgroup_thaw_killed(struct cgroup *g);

int cgroup_v1_create(const struct cgroup_host *host, struct cgroup *g, const char *name,
		     struct pale_err *err) _must_check_;
int cgroup_v2_create(const struct cgroup_host *host, struct cgroup *g, const char *name,
		     struct pale_err *err) _must_check_;
int cgroup_systemd_create(const struct cgroup_host *host, struct cgroup *g, const char *name,
			  struct pale_err *err) _must_check_;
/* OOM kills in all boxes that were ever in the slice. */
uint64_t cgroup_systemd_slice_kills(const struct cgroup *g);
/* v2: the parts that the systemd kind uses too. */
int cgroup_v2_usage(struct cgroup *g, struct cgroup_usage *ret, struct pale_err *err) _must_check_;
uint64_t cgroup_v2_throttled_us(const struct cgroup *g);
void cgroup_v2_stop_forks(struct cgroup *g);
/* The set is made first (the systemd kind has nothing to put into it yet), then filled. */
int cgroup_v2_watch_open(struct cgroup *g);
int cgroup_v2_watch_start(struct cgroup *g);
void cgroup_v2_drain(struct cgroup *g);

void cgroup_v1_probe(const struct cgroup_source *src, const struct cgroup_places *places,
		     struct cgroup_host *ret);
void cgroup_v2_probe(const struct cgroup_source *src, const struct cgroup_places *places,
		     struct cgroup_host *ret);
/* Fills in ret if systemd can be asked for a scope by this user; else appends the reason to why. */
void cgroup_systemd_probe(const struct cgroup_source *src, const struct cgroup_places *places,
			  struct cgroup_host *ret);

/* Files of a group. Each returns 0 (or a length) or a negative errno. */
int cgroup_file_write(const char *dir, const char *file, const char *value);
int cgroup_file_write_u64(const char *dir, const char *file, uint64_t value);
ssize_t cgroup_file_read(const char *dir, const char *file, char *buf, size_t size);
int cgroup_file_u64(const char *dir, const char *file, uint64_t *ret);
/* The number after `key ` at the start of a line; 0 if there is none. */
uint64_t cgroup_key(const char *text, const char *key);
bool cgroup_word(const char *text, const char *word);
bool cgroup_has_file(const char *dir, const char *file);
/* For the probe: access(), where a failure that does not say that it is not there, or not for us,
 * goes into h->error; and the same for the result of another call. */
bool cgroup_may(struct cgroup_host *h, const char *path, int mode);
void cgroup_note(struct cgroup_host *h, int result);
/* Makes one directory of g; the errors name the path. */
int cgroup_dir_make(struct cgroup *g, const char *base, const char *name, struct pale_err *err);
int cgroup_limit_failed(const char *dir, const char *file, int r, struct pale_err *err);
void cgroup_why(struct cgroup_host *h, const char *fmt, ...) _printf_(2, 3);
