import { CollabError, type ErrorCode } from '../../model/errors.ts';

/** An error about an earlier line than the one that `Import.add` was called with. */
export class ImportError extends CollabError {
  /** The number of that line, from 1. */
  readonly line: number;

  constructor(line: number, code: ErrorCode, message: string) {
    super(code, message);
    this.line = line;
  }
}
