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
  type Group = { readonly x: number; readonly y: number; readonly ids: string[] };
  const groups: Group[] = [];
  const grid = new Map<number, Group[]>();
  for (const { id, x, y } of pins) {
    const cell = Math.floor(x / distance) * ROWS + Math.floor(y / distance);
    const near = apart.has(id) ? undefined : groupNear(grid, cell, x, y, distance);
    if (near !== undefined) {
      near.ids.push(id);
      continue;
    }
    const group = { x, y, ids: [id] };
    groups.push(group);
    if (apart.has(id)) continue;
    const others = grid.get(cell);
    if (others === undefined) grid.set(cell, [group]);
    else others.push(group);
  }
  return groups;
}

/** Cells have numbers: each column has so many. */
const ROWS = 2 ** 24;
const AROUND = [-1, 0, 1].flatMap((column) => [-1, 0, 1].map((row) => column * ROWS + row));

function groupNear<T extends { readonly x: number; readonly y: number }>(
  grid: ReadonlyMap<number, readonly T[]>,
  cell: number,
  x: number,
  y: number,
  distance: number,
): T | undefined {
  for (const offset of AROUND) {
    for (const group of grid.get(cell + offset) ?? []) {
      if (Math.hypot(group.x - x, group.y - y) < distance) return group;
    }
  }
  return undefined;
}
