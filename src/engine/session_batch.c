/* Several sessions of a model, one step each. */
#include "engine/engine.h"

plumb_status plumb_sessions_step(plumb_session *const *sessions, const int32_t *tokens, int64_t n,
                                 const float **logits, plumb_error *err) {
    for (int64_t i = 0; i < n; i++) {
        plumb_status status = plumb_session_eval(sessions[i], tokens + i, 1, logits + i, err);
        if (status == PLUMB_OK) continue;
        while (i-- > 0) {
            plumb_error other;
            plumb_status back = plumb_session_rewind(sessions[i], plumb_session_length(sessions[i]) - 1, &other);
            if (back != PLUMB_OK) return back;
        }
        return status;
    }
    return PLUMB_OK;
}
