import { html, type TemplateResult } from 'lit';
import type { Person } from '../core/people.ts';

/** The round picture of a user, or the initials. It adds nothing for screen readers: the name is always beside it. */
export function avatar({ avatarUrl, hue, initials, isBot }: Person, size: 'small' | 'large' | '' = ''): TemplateResult {
  const picture = avatarUrl === null ? initials : html`<img src=${avatarUrl} alt="" loading="lazy" referrerpolicy="no-referrer" @error=${removeBroken} />`;
  return html`<span class="avatar hue-${hue} ${size} ${isBot ? 'bot' : ''}" part="avatar" aria-hidden="true">${picture}</span>`;
}

function removeBroken(event: Event): void {
  (event.target as HTMLElement).hidden = true;
}
