/* Elements without HTML text: names, properties and children. */

/* `properties` are set as properties, those with a dash (and role) as attributes.  A child may be a list of them:
 * as arguments, a long answer's would be more than the stack holds. */
export function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const child of children.flat()) if (child !== null && child !== undefined) made.append(child);
  // Afterwards, since dir="auto" has a browser look at all children whenever there is one more.
  for (const [key, value] of Object.entries(properties)) {
    if (value === undefined || value === null) continue;
    if (key.includes('-') || key === 'role') made.setAttribute(key, value);
    else made[key] = value;
  }
  return made;
}

/* One of the icons that index.html defines. */
export function icon(name) {
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  svg.setAttribute('class', 'icon');
  svg.setAttribute('aria-hidden', 'true');
  const use = document.createElementNS('http://www.w3.org/2000/svg', 'use');
  use.setAttribute('href', `#icon-${name}`);
  svg.append(use);
  return svg;
}

export function iconButton(name, label, onclick, className = '') {
  return element('button', {
    type: 'button', className: `icon-button ${className}`.trim(), title: label, 'aria-label': label, onclick,
  }, icon(name));
}

/* Whether a key belongs to an input method; Safari ends the composition before it tells of Enter. */
export const isComposing = (event) => event.isComposing || event.keyCode === 229;

/* Copies text, and shows on the button that it did. */
export async function copyText(text, button) {
  if (!await toClipboard(text)) return;
  const use = button.querySelector('use');
  use.setAttribute('href', '#icon-check');
  setTimeout(() => use.setAttribute('href', '#icon-copy'), 1500);
}

/* navigator.clipboard is kept from pages that came over plain HTTP from another machine. */
async function toClipboard(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text).then(() => true, () => false);
  const area = element('textarea', { value: text, className: 'visually-hidden' });
  const focused = document.activeElement;
  document.body.append(area);
  area.select();
  const copied = document.execCommand('copy');
  area.remove();
  focused?.focus();
  return copied;
}

/* A text field as high as its text, where style.css alone does not make it so. */
export function growWithText(area) {
  if (CSS.supports('field-sizing', 'content')) return;
  const grow = () => {
    area.style.height = 'auto';
    area.style.height = `${area.scrollHeight}px`;
  };
  area.addEventListener('input', grow);
  requestAnimationFrame(grow);
}
