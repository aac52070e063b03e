import * as Type from 'typebox';
import type { Static } from 'typebox';

/** A person who administers the server: all its environments and their keys (docs/api.md, "Administration"). */
export interface Admin {
  readonly id: string;
  /** In lower case. */
  readonly email: string;
  readonly role: 'admin';
  readonly createdAt: string;
}

/** An admin as stored. */
export interface StoredAdmin extends Admin {
  /** `$scrypt$ln=…,r=…,p=…$salt$hash`. */
  readonly passwordHash: string;
  /** Incremented with each new password, which invalidates earlier sessions. */
  readonly passwordVersion: number;
}

/** A session of an admin. Its token is shown once; the store has only the SHA-256 of it. */
export interface AdminSession {
  readonly adminId: string;
  /** The key under which the admin is stored. */
  readonly adminKey: string;
  readonly passwordVersion: number;
  readonly createdAt: string;
  /** Precise to the minute. */
  readonly lastUsedAt: string;
}

/** The body of a login. */
export const LoginSchema = Type.Object({
  email: Type.String({ minLength: 1, maxLength: 320, description: 'Email address of the admin, in any case.' }),
  password: Type.String({ minLength: 1, maxLength: 1024 }),
});
export type Login = Static<typeof LoginSchema>;
