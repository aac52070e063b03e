import { svg, html, type TemplateResult } from 'lit';

const paths = {
  comment: 'M10 3.5c-4 0-7 2.6-7 6 0 1.9.9 3.5 2.4 4.6l-.5 2.9 3-1.6c.7.1 1.4.2 2.1.2 4 0 7-2.6 7-6s-3-6.1-7-6.1Z',
  bell: 'M5.5 8.500a4.5 4.500 0 0 1 9 0c0 4 1.500 5 1.500 5H4s1.500-1 1.500-5ZM8.500 16.200a1.700 1.700 0 0 0 3 0',
  settings: 'M4 6.500h6m4 0h2M4 13.500h2m4 0h6M14 6.500a2 2 0 1 1-4 0 2 2 0 0 1 4 0ZM10 13.500a2 2 0 1 1-4 0 2 2 0 0 1 4 0Z',
  back: 'M11.500 5 6.500 10l5 5M7 10h9',
  muted: 'M5.500 8.500a4.5 4.500 0 0 1 9 0c0 4 1.500 5 1.500 5H4s1.500-1 1.500-5ZM8.500 16.200a1.700 1.700 0 0 0 3 0M4 4l12.500 12.500',
  list: 'M3.5 5.5h13M3.5 10h13M3.5 14.5h8',
  close: 'm5 5 10 10M15 5 5 15',
  send: 'M10 16V4.5M5 9l5-5 5 5',
  clip: 'm14.5 9.5-5 5a3 3 0 0 1-4.3-4.2l5.7-5.8a2 2 0 0 1 2.9 2.9l-5.6 5.6a1 1 0 0 1-1.5-1.4l4.8-4.8',
  mic: 'M10 3a2 2 0 0 0-2 2v4.5a2 2 0 1 0 4 0V5a2 2 0 0 0-2-2ZM5 9.5a5 5 0 0 0 10 0M10 14.5V17',
  stop: 'M6 6h8v8H6z',
  at: 'M13 10a3 3 0 1 1-6 0 3 3 0 0 1 6 0Zm0 0v1a2 2 0 0 0 4 0v-1a7 7 0 1 0-3 5.7',
  smile: 'M17 10a7 7 0 1 1-14 0 7 7 0 0 1 14 0ZM7 11.5c.6 1.2 1.7 2 3 2s2.4-.8 3-2M7.5 8h.01M12.5 8h.01',
  check: 'm4.5 10.5 3.5 3.5 7.5-8',
  reopen: 'M4 10a6 6 0 1 0 2-4.500L4 7.500M4 4v3.500h3.5',
  more: 'M4.5 9.500h1v1h-1zm5 0h1v1h-1zm5 0h1v1h-1z',
  edit: 'M12 5.5 14.5 8 7.5 15H5v-2.500l7-7Z',
  trash: 'M4.5 6h11M8 6V4.500h4V6m-6 0 .6 9.500h6.800L14 6',
  link: 'M8.5 11.500a3 3 0 0 0 4.2 0l2.4-2.400a3 3 0 0 0-4.2-4.200l-.9.9m1.5 2.700a3 3 0 0 0-4.2 0l-2.4 2.400a3 3 0 0 0 4.2 4.200l.9-.9',
  search: 'M13 8.500a4.5 4.5 0 1 1-9 0 4.5 4.5 0 0 1 9 0Zm-1.3 3.200L16 16',
  left: 'M12 5 7 10l5 5',
  right: 'm8 5 5 5-5 5',
  download: 'M10 4v8m-3.5-3L10 12.5 13.5 9M4.5 16h11',
  play: 'M7 4.500v11l8.5-5.500L7 4.500Z',
  file: 'M6 3.500h5.500L15 7v9.500H6v-13Zm5 0V7.500h4',
  warn: 'M10 4 3 16h14L10 4Zm0 5v3m0 2h.01',
  eye: 'M2.5 10S5.500 5 10 5s7.500 5 7.500 5-3 5-7.500 5-7.500-5-7.500-5Zm9.500 0a2 2 0 1 1-4 0 2 2 0 0 1 4 0Z',
  hidden: 'M2.500 10S5.500 5 10 5s7.500 5 7.500 5-3 5-7.500 5-7.500-5-7.500-5ZM4 16 16 4',
  flag: 'M5 17V4m0 .500h9l-2 3.500 2 3.500H5',
  pin: 'M10 17s5-4.5 5-8.500a5 5 0 0 0-10 0C5 12.5 10 17 10 17Zm0-7a1.5 1.5 0 1 0 0-3 1.5 1.5 0 0 0 0 3Z',
} as const;

/** The name of an icon. */
export type IconName = keyof typeof paths;

/** An icon of 20 × 20 pixels, drawn in the colour of the text around it. Screen readers skip it. */
export function icon(name: IconName): TemplateResult {
  return html`<svg class="icon" viewBox="0 0 20 20" aria-hidden="true" focusable="false">${svg`<path d=${paths[name]}></path>`}</svg>`;
}
