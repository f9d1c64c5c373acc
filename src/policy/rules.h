/* The entries of network.allow, network.deny, network.secrets and network.publish: from a row to
 * what it means, and back. */
#pragma once

#include "policy/model.h"
#include "policy/options.h"

int rule_view(const struct network_rule *rule, struct rule_row *row) _must_check_;
/* A row with a preset alone becomes the rules of that preset; one without a protocol becomes a rule
 * for each protocol that its ports stand for. */
int rule_append(struct policy *p, const struct rule_row *row, bool deny,
		const struct option_place *at, struct pale_err *err) _must_check_;
int secret_append(struct policy *p, const struct secret_row *row, const struct option_place *at,
		  struct pale_err *err) _must_check_;

int publish_append(struct policy *p, const struct publish_row *row, const struct option_place *at,
		   struct pale_err *err) _must_check_;

/* For the options table: the form in which a value is kept, or whether it can be one. */
int rule_host_normal(const char *text, char ret[static OPTION_TEXT_MAX]);
/* The same without "*.". */
int rule_single_host_normal(const char *text, char ret[static OPTION_TEXT_MAX]);
void rule_host_hint(const char *text, struct pale_err *err);
int rule_address_normal(const char *text, char ret[static OPTION_TEXT_MAX]);
int rule_ports_normal(const char *text, char ret[static OPTION_TEXT_MAX]);
int rule_method_normal(const char *text, char ret[static OPTION_TEXT_MAX]);
int rule_path_normal(const char *text, char ret[static OPTION_TEXT_MAX]);
int secret_header_normal(const char *text, char ret[static OPTION_TEXT_MAX]);
bool secret_query_valid(const char *text);
bool secret_env_valid(const char *text);
bool secret_source_valid(const char *text);

/* The rules of a preset: appended to p with its name and, where the row has them, the row's
 * methods, paths and caps. */
int preset_append(struct policy *p, const struct rule_row *row, const struct option_place *at,
		  struct pale_err *err) _must_check_;
