/** Which sockets have joined which rooms over one connection. */
export class Members {
  readonly #rooms = new Map<string, Set<string>>();

  /** Adds a socket to a room. Returns whether it was not in it. */
  join(roomId: string, socketId: string): boolean {
    const members = this.of(roomId);
    const joins = !members.has(socketId);
    this.#rooms.set(roomId, members.add(socketId));
    return joins;
  }

  /** Removes a socket from a room. Returns whether the room has no other. */
  leave(roomId: string, socketId: string): boolean {
    const members = this.of(roomId);
    members.delete(socketId);
    if (members.size === 0) this.#rooms.delete(roomId);
    return members.size === 0;
  }

  /** Removes a socket from all rooms. Returns those that have no other now. */
  leaveAll(socketId: string): string[] {
    return [...this.#rooms].flatMap(([roomId, members]) =>
      members.has(socketId) && this.leave(roomId, socketId) ? [roomId] : [],
    );
  }

  /** The sockets in a room. */
  of(roomId: string): Set<string> {
    return this.#rooms.get(roomId) ?? new Set();
  }
}
