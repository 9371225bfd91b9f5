/* The experts a model used most, kept between runs in a small text file, so that the next run can
 * read them before it is asked for them.
 *
 *   plumb hot experts 1 LAYERS EXPERTS
 *   LAYER EXPERT USES          most used first
 *
 * Uses fade: what is written is this run's uses and half of what was in the file before. */
#ifndef PLUMB_STREAM_HOT_LIST_H
#define PLUMB_STREAM_HOT_LIST_H

#include "format/model_config.h"

/* Fills uses [layers * experts], zero where the file says nothing.  PLUMB_ERROR_IO when there is no
 * such file, PLUMB_ERROR_FORMAT when it is not one for this config: uses are then all zero. */
PLUMB_MUST_CHECK plumb_status plumb__hot_list_read(const char *path,
                                                   const plumb_model_config *config, uint32_t *uses,
                                                   plumb_error *err);
/* Written whole or not at all. */
PLUMB_MUST_CHECK plumb_status plumb__hot_list_write(const char *path,
                                                    const plumb_model_config *config,
                                                    const uint32_t *uses, plumb_error *err);
/* Keys (layer * experts + id) with any use, most used first; returns how many. */
int64_t plumb__hot_list_keys(const plumb_model_config *config, const uint32_t *uses, int32_t *keys);

#endif
