#pragma once

const char *gpumgr_version(void);
