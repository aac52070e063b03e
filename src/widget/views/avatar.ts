import { html, nothing, type TemplateResult } from 'lit';
import type { Person } from '../core/people.ts';

/**
 * The round picture of a user, or the initials, which the style sheet shows: as text of a pin they would have to be in
 * its name. It adds nothing for screen readers: the name is always beside it.
 */
export function avatar({ avatarUrl, hue, initials, isBot }: Person, size: 'small' | 'large' | '' = ''): TemplateResult {
  const picture =
    avatarUrl === null
      ? nothing
      : html`<img src=${avatarUrl} alt="" loading="lazy" referrerpolicy="no-referrer" @error=${removeBroken} />`;
  return html`<span
    class="avatar hue-${hue} ${size} ${isBot ? 'bot' : ''}"
    part="avatar"
    data-initials=${avatarUrl === null ? initials : nothing}
    aria-hidden="true"
    >${picture}</span
  >`;
}

function removeBroken(event: Event): void {
  (event.target as HTMLElement).hidden = true;
}
