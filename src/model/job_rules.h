/* What words of a job must look like, for others who take the same words: containers (model/container_spec). */
#pragma once

#include <stdbool.h>
#include <stddef.h>

bool job_text_is_plain(const char *text);      /* UTF-8 without control characters */
bool job_word_is_image(const char *image);     /* repository/name:tag */
bool job_word_is_mount(const char *mount);     /* SOURCE:TARGET[:ro], full paths */
bool job_mount_is_root(const char *mount);     /* one of those: its target is / itself */
bool job_word_is_gpu(const char *gpu);         /* an index or a UUID */
size_t job_variable_len(const char *variable); /* of the name in NAME=VALUE; 0: it is none */
bool job_variable_is_ours(const char *variable);
