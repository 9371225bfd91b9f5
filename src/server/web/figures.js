/* Figures of answers in words. */

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });

export const count = (number) => whole.format(number);

export function rate(perSecond) {
  return `${perSecond < 100 ? perSecond.toFixed(1) : count(perSecond)} tokens/s`;
}

const tokens = (number) => `${count(number)} ${number === 1 ? 'token' : 'tokens'}`;

export function duration(seconds) {
  if (seconds < 0.1) return `${Math.max(1, Math.round(1000 * seconds))} ms`;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 60) return `${Math.round(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  return `${minutes} min ${Math.floor(seconds % 60)} s`;
}

const isCount = (value) => Number.isFinite(value) && value >= 0;

/* What the server told of a finished answer; empty where it told nothing. */
export function answerFigures({ usage, timings }) {
  const parts = [];
  if (timings?.generation_tokens_per_second > 0) parts.push(rate(timings.generation_tokens_per_second));
  if (isCount(usage?.completion_tokens)) parts.push(tokens(usage.completion_tokens));
  if (isCount(usage?.prompt_tokens)) {
    const cached = timings?.cached_tokens ?? usage.prompt_tokens_details?.cached_tokens ?? 0;
    let prompt = `prompt of ${count(usage.prompt_tokens)}`;
    if (cached > 0) prompt += ` (${count(cached)} cached)`;
    if (timings?.prompt_seconds > 0) prompt += ` in ${duration(timings.prompt_seconds)}`;
    parts.push(prompt);
  }
  return parts.join(' · ');
}

/* What the page measures meanwhile, once that means something: pieces are mostly tokens. */
export function liveFigures(pieces, seconds) {
  if (seconds < 0.5) return '';
  return `≈ ${rate((pieces - 1) / seconds)} · ${tokens(pieces)}`;
}

/* How much of the context a conversation fills after its newest answer. */
export function contextTokens(path) {
  const usage = path.findLast((message) => message.usage)?.usage;
  return usage ? (usage.prompt_tokens ?? 0) + (usage.completion_tokens ?? 0) : 0;
}
