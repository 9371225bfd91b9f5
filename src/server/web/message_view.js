/* One message on the page.  `update` makes it show what the message holds now. */
import { showMarkdown } from './markdown_dom.js';
import { copyText, element, growWithText, icon, iconButton, isComposing } from './dom.js';
import { answerFigures, count, duration, liveFigures } from './figures.js';

/* `actions`: {edit(message, text), again(message), show(message)}. */
export function messageView(message, actions) {
  return message.role === 'user' ? new UserView(message, actions) : new AnswerView(message, actions);
}

/* ‹ 2/3 ›, for messages that have siblings. */
class Branches {
  constructor(actions) {
    this.element = element('span', { className: 'branches', hidden: true });
    this.actions = actions;
  }

  update(message, siblings, running) {
    this.element.hidden = siblings.length < 2;
    if (this.element.hidden) return;
    const at = siblings.indexOf(message);
    const step = (name, label, to) => {
      const button = iconButton(name, label, () => this.actions.show(to, label));
      button.disabled = running || !to;
      return button;
    };
    this.element.replaceChildren(
      step('left', 'Previous version', siblings[at - 1]),
      element('span', { role: 'img', 'aria-label': `Version ${at + 1} of ${siblings.length}` },
        `${at + 1}/${siblings.length}`),
      step('right', 'Next version', siblings[at + 1]));
  }
}

class UserView {
  constructor(message, actions) {
    this.message = message;
    this.actions = actions;
    this.branches = new Branches(actions);
    this.bubble = element('div', { className: 'bubble', dir: 'auto' }, message.content);
    this.editButton = iconButton('edit', 'Edit', () => this.#edit(), 'changes');
    const copy = iconButton('copy', 'Copy message', () => copyText(message.content, copy));
    this.bar = element('div', { className: 'actions' },
      element('span', { className: 'tools' }, copy, this.editButton), this.branches.element);
    this.element = element('article', { className: 'message', 'aria-label': 'You', 'data-role': 'user' },
      this.bubble, this.bar);
  }

  update({ siblings, running }) {
    this.branches.update(this.message, siblings, running);
  }

  #edit() {
    const area = element('textarea', {
      value: this.message.content, rows: 1, 'aria-label': 'Edit the message',
    });
    const close = () => {
      editor.replaceWith(this.bubble);
      this.bar.hidden = false;
      this.editButton.focus();
    };
    const send = () => {
      if (area.value.trim() === '') return;
      close();
      this.actions.edit(this.message, area.value);
    };
    const editor = element('div', { className: 'editor' }, area, element('div', {},
      element('button', { type: 'button', className: 'quiet', onclick: close }, 'Cancel'),
      element('button', { type: 'button', className: 'primary', onclick: send }, 'Send')));
    area.addEventListener('keydown', (event) => {
      if (event.key === 'Escape') {
        event.stopPropagation();
        close();
      } else if (event.key === 'Enter' && !event.shiftKey && !isComposing(event)) {
        event.preventDefault();
        send();
      }
    });
    growWithText(area);
    this.bubble.replaceWith(editor);
    this.bar.hidden = true;
    area.focus();
  }
}

class AnswerView {
  constructor(message, actions) {
    this.message = message;
    this.actions = actions;
    this.branches = new Branches(actions);
    this.summary = element('span');
    this.reasoning = element('div', { className: 'markdown' });
    this.thinking = element('details', { className: 'thinking', hidden: true },
      element('summary', {}, icon('thought'), this.summary), this.reasoning);
    // What is folded is not laid out; it is brought up to date when it opens.
    this.thinking.addEventListener('toggle', () => this.#showReasoning());
    this.waiting = element('div', { className: 'waiting', hidden: true });
    this.content = element('div', { className: 'markdown content' });
    this.notice = element('div', { className: 'notice', hidden: true });
    this.figures = element('span', { className: 'figures' });
    const copy = iconButton('copy', 'Copy answer', () => copyText(message.content, copy));
    const again = iconButton('again', 'Answer again', () => actions.again(message), 'changes');
    this.tools = element('span', { className: 'tools' }, copy, again);
    this.element = element('article', { className: 'message', 'aria-label': 'Answer', 'data-role': 'assistant' },
      this.thinking, this.waiting, this.content, this.notice,
      element('div', { className: 'actions' }, this.branches.element, this.tools, this.figures));
  }

  /* `live` is there while the answer is made. */
  update({ siblings, running, live }) {
    const { message } = this;
    const phase = live?.phase ?? 'ended';
    this.element.dataset.state = message.state;
    this.element.dataset.phase = phase;
    this.element.setAttribute('aria-busy', String(Boolean(live)));
    this.thinking.hidden = message.reasoning === '';
    this.summary.textContent = phase === 'thinking' ? thinkingFor(live.seconds) : thoughtFor(message.thinkingSeconds);
    this.#showReasoning();
    this.#showWaiting(live);
    showMarkdown(this.content, message.content);
    this.#showNotice(Boolean(live));
    this.tools.hidden = Boolean(live);
    this.figures.textContent = live ? liveFigures(live.pieces, live.seconds) : answerFigures(message);
    this.branches.update(message, siblings, running);
  }

  #showReasoning() {
    if (this.thinking.open) showMarkdown(this.reasoning, this.message.reasoning);
  }

  #showWaiting(live) {
    this.waiting.hidden = !live || live.phase === 'thinking' || live.phase === 'writing';
    if (this.waiting.hidden) return;
    if (live.phase === 'waiting') {
      this.waiting.replaceChildren(element('span', {}, 'Waiting for the server'));
      return;
    }
    const progress = element('progress', { max: live.total, value: live.done, 'aria-label': 'Prompt read' });
    this.waiting.replaceChildren(
      element('span', {}, `Reading the prompt: ${count(live.done)} of ${count(live.total)} tokens`), progress);
  }

  #showNotice(live) {
    const { message, notice } = this;
    const text = live ? '' : noticeText(message);
    notice.hidden = text === '';
    notice.className = message.state === 'failed' ? 'notice bad' : 'notice';
    if (notice.hidden || notice.firstChild?.textContent === text) return;
    notice.replaceChildren(element('span', {}, text));
    if (message.state === 'failed') {
      notice.append(element('button', { type: 'button', onclick: () => this.actions.again(message) }, 'Try again'));
    }
  }
}

const thinkingFor = (seconds) => (seconds < 1 ? 'Thinking' : `Thinking for ${duration(seconds)}`);

function thoughtFor(seconds) {
  if (seconds === undefined) return 'Thoughts';
  return seconds < 1 ? 'Thought briefly' : `Thought for ${duration(seconds)}`;
}

function noticeText(message) {
  if (message.state === 'failed') return message.error ?? 'The answer failed.';
  if (message.state === 'stopped') return 'Stopped.';
  if (message.state === 'running') return 'Another window writes this answer.';
  if (message.finish === 'length') return 'Cut off: the limit of tokens was reached.';
  if (message.content === '') return 'The answer is empty.';
  return '';
}
