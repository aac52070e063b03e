import Type, { type Static } from 'typebox';

/** A person who administers the server: all its environments and their keys (docs/api.md, "Administration"). */
export interface Admin {
  readonly id: string;
  /** In lower case. */
  readonly email: string;
  readonly role: 'admin';
  readonly createdAt: string;
}

export interface StoredAdmin extends Admin {
  /** `$scrypt$ln=…,r=…,p=…$salt$hash`. */
  readonly passwordHash: string;
  /** Counts the passwords that the admin has had: sessions of an earlier one are void. */
  readonly passwordVersion: number;
}

/** A login. Its token is shown once; the store holds the SHA-256 of it alone. */
export interface AdminSession {
  readonly adminId: string;
  /** Where the admin is stored. */
  readonly adminKey: string;
  readonly passwordVersion: number;
  readonly createdAt: string;
  /** To the minute. */
  readonly lastUsedAt: string;
}

export const LoginSchema = Type.Object({
  email: Type.String({ minLength: 1, maxLength: 320, description: 'Email address of the admin, in any case.' }),
  password: Type.String({ minLength: 1, maxLength: 1024 }),
});
export type Login = Static<typeof LoginSchema>;
