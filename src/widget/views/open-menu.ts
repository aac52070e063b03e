/** The least distance of a menu from its buttons, in pixels. */
const GAP = 4;

/**
 * Shows a menu below the buttons that opened it, or above them if there is no room. It goes to the top layer, where nothing
 * clips it, and ends with its element.
 */
export function openMenu(menu: HTMLElement, buttons: HTMLElement): void {
  menu.popover = 'manual';
  menu.showPopover();
  const { left, right, top, bottom } = buttons.getBoundingClientRect();
  const { offsetWidth: width, offsetHeight: height } = menu;
  const x = getComputedStyle(menu).direction === 'rtl' ? left : right - width;
  const y = bottom + GAP + height <= innerHeight ? bottom + GAP : top - GAP - height;
  menu.style.setProperty('--x', `${Math.max(GAP, Math.min(x, innerWidth - width - GAP))}px`);
  menu.style.setProperty('--y', `${Math.max(GAP, y)}px`);
}
