/* Unix groups of this machine, as its directories tell. May ask over a network, so it may wait. */
#pragma once

#include <stdbool.h>

/* By the group's list of members, or as his first group. False also where there is no such group or user. */
bool group_has(const char *group, const char *user);
