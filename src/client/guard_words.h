#pragma once
#include "model/guard_words.h"
