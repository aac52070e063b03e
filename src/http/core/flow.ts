/** Stops and continues reading from a connection. */
export interface Flow {
  pause(): void;
  resume(): void;
}
