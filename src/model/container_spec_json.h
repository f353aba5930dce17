/* A container's description from JSON: what people and programs send (docs/api.md). Not linked into gpumgr-node. */
#pragma once

#include "model/container_spec.h"

/* Appends the record. */
int container_spec_from_json(const char *text, size_t len, struct buf *record, struct error *e) MUST_CHECK;
