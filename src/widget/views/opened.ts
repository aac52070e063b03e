import { enLater } from '../strings/en-later.ts';
import { addEnglish } from '../strings/language.ts';
import panelSheet from '../styles/panel.css';
import threadSheet from '../styles/thread.css';
import forcedSheet from '../styles/forced-colors.css';
import { addIcons } from './icons.ts';
import { laterIcons } from './icons/later.ts';
import './placing.ts';
import './viewer.ts';

// The views that the widget shows once something is opened. The script loads it after the pins are there, as a file of
// its own.

export { Announcements } from '../core/announcements.ts';
export { moveThread } from '../core/thread-writes.ts';
export { holdFocus } from '../hold-focus.ts';
export { onShortcut } from '../shortcuts.ts';
export { panelView } from './panel.ts';
export { popoverView } from './popover.ts';
export { acceptDrops } from './drops.ts';
export { dragPins } from '../pins/drag.ts';
export { LiveCursors } from './cursors.ts';

addEnglish(enLater);
addIcons(laterIcons);

/** The style sheets of these views. */
export const sheets = [threadSheet, panelSheet, forcedSheet];
