/* The changes that a run left: runs/<id>/changes/, found by what the caller calls the run. */
#pragma once

#include "audit/audit.h"

struct kept {
	char id[AUDIT_ID_SIZE];
	int run_fd;
	int changes_fd;
	unsigned *overlays; /* the <n> of changes/<n>/, ascending */
	size_t count;
};

#define KEPT_NONE ((struct kept){.run_fd = -1, .changes_fd = -1})

/* ref as audit_find() takes it. PALE_E_NOTFOUND also if the run has no changes (any more). */
int kept_open(const char *ref, struct kept *ret, struct pale_err *err) _must_check_;
void kept_done(struct kept *k);
#define _cleanup_kept_ _cleanup_(kept_done)

/* Opens changes/<n>/. */
int kept_open_overlay(const struct kept *k, unsigned n, struct pale_err *err) _must_check_;

/* Removes all of changes/. */
int kept_remove(const struct kept *k, struct pale_err *err) _must_check_;
