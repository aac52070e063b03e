import { html, type TemplateResult } from 'lit';
import type { App } from '../core/app.ts';
import { icon } from '../views/icons.ts';

const emojis = [
  '👍',
  '👎',
  '❤️',
  '🎉',
  '😄',
  '😂',
  '😮',
  '😢',
  '🙏',
  '👀',
  '🚀',
  '🔥',
  '✅',
  '❌',
  '💯',
  '💡',
  '🤔',
  '👏',
  '🙌',
  '🐛',
  '⚠️',
  '✨',
  '☕',
] as const;
const COLUMNS = 6;

/** A grid of the usual emoji, and a button for all others. The arrow keys move within it. */
export function emojiPicker(
  app: App,
  choose: (emoji: string) => void,
  showAll: () => void,
  close: () => void,
): TemplateResult {
  return html`<div
    class="menu emoji-picker"
    role="dialog"
    aria-label=${app.language.text('react')}
    @keydown=${(event: KeyboardEvent) => onKey(event, close)}
  >
    ${emojis.map((emoji, index) => html`<button type="button" class="emoji" tabindex=${index === 0 ? 0 : -1} aria-label=${app.language.text('reactWith', { emoji })} @click=${() => choose(emoji)}>${emoji}</button>`)}
    <button
      type="button"
      class="emoji"
      tabindex="-1"
      aria-label=${app.language.text('moreEmoji')}
      title=${app.language.text('moreEmoji')}
      @click=${showAll}
    >
      ${icon('more')}
    </button>
  </div>`;
}

function onKey(event: KeyboardEvent, close: () => void): void {
  if (event.key === 'Escape') {
    event.stopPropagation();
    return close();
  }
  const steps: Record<string, number> = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: COLUMNS, ArrowUp: -COLUMNS };
  const step = steps[event.key];
  if (step === undefined) return;
  event.preventDefault();
  const buttons = [...(event.currentTarget as HTMLElement).querySelectorAll('button')];
  const at = buttons.indexOf(event.target as HTMLButtonElement);
  const rtl = getComputedStyle(event.currentTarget as HTMLElement).direction === 'rtl' && Math.abs(step) === 1;
  buttons[(at + (rtl ? -step : step) + buttons.length) % buttons.length]?.focus();
}
