/** A pin at a place, in CSS pixels. */
export interface PlacedPin {
  readonly id: string;
  readonly x: number;
  readonly y: number;
}

/** Pins that are shown as one, at the place of the first. */
export interface Cluster {
  readonly x: number;
  readonly y: number;
  readonly ids: readonly string[];
}

/**
 * Groups pins that would overlap: each pin joins the first group that began within `distance` pixels of it, in the
 * order of `pins`, so that a new pin never moves the groups before it. Groups are found through a grid, so that the
 * work grows with the number of pins and not with its square.
 *
 * @param apart ids of pins that are always shown alone
 */
export function clusterPins(
  pins: readonly PlacedPin[],
  distance: number,
  apart: ReadonlySet<string> = new Set(),
): Cluster[] {
  const groups: { readonly x: number; readonly y: number; readonly ids: string[] }[] = [];
  const grid = new Map<string, (typeof groups)[number][]>();
  for (const pin of pins) {
    const column = Math.floor(pin.x / distance);
    const row = Math.floor(pin.y / distance);
    const near = apart.has(pin.id)
      ? undefined
      : neighbours(grid, column, row).find((group) => Math.hypot(group.x - pin.x, group.y - pin.y) < distance);
    if (near !== undefined) {
      near.ids.push(pin.id);
      continue;
    }
    const group = { x: pin.x, y: pin.y, ids: [pin.id] };
    groups.push(group);
    if (apart.has(pin.id)) continue;
    const cell = `${column} ${row}`;
    grid.set(cell, [...(grid.get(cell) ?? []), group]);
  }
  return groups;
}

function neighbours<T>(grid: ReadonlyMap<string, T[]>, column: number, row: number): T[] {
  const found: T[] = [];
  for (let x = column - 1; x <= column + 1; x += 1) {
    for (let y = row - 1; y <= row + 1; y += 1) found.push(...(grid.get(`${x} ${y}`) ?? []));
  }
  return found;
}
