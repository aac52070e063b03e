import { svg, html, type TemplateResult } from 'lit';
import type { laterIcons } from './icons/later.ts';

const first = {
  comment: 'M10 3.5c-4 0-7 2.6-7 6 0 1.9.9 3.5 2.4 4.6l-.5 2.9 3-1.6c.7.1 1.4.2 2.1.2 4 0 7-2.6 7-6s-3-6.1-7-6.1Z',
  bell: 'M5.5 8.500a4.5 4.500 0 0 1 9 0c0 4 1.500 5 1.500 5H4s1.500-1 1.500-5ZM8.500 16.200a1.700 1.700 0 0 0 3 0',
  list: 'M3.5 5.5h13M3.5 10h13M3.5 14.5h8',
  close: 'm5 5 10 10M15 5 5 15',
  check: 'm4.5 10.5 3.5 3.5 7.5-8',
  warn: 'M10 4 3 16h14L10 4Zm0 5v3m0 2h.01',
} as const;

/** The drawings that are loaded. */
let paths: Readonly<Record<string, string>> = first;

/** Adds the drawings of what is loaded later. An icon without one is empty. */
export function addIcons(more: typeof laterIcons): void {
  paths = { ...paths, ...more };
}

/** The name of an icon. */
export type IconName = keyof typeof first | keyof typeof laterIcons;

/** An icon of 20 × 20 pixels, drawn in the colour of the text around it. Screen readers skip it. */
export function icon(name: IconName): TemplateResult {
  return html`<svg class="icon" viewBox="0 0 20 20" aria-hidden="true" focusable="false">
    ${svg`<path d=${paths[name] ?? ''}></path>`}
  </svg>`;
}
