import { createDecipheriv, createECDH, hkdfSync, randomBytes } from 'node:crypto';

/** A browser's side of a push subscription. */
export interface Browser {
  readonly p256dh: string;
  readonly auth: string;
  /** Decrypts a message as RFC 8291 and RFC 8188 (`aes128gcm`, one record) say. */
  decrypt(message: Buffer): string;
}

/** Makes the keys of a subscription. */
export function newBrowser(): Browser {
  const ecdh = createECDH('prime256v1');
  const own = ecdh.generateKeys();
  const auth = randomBytes(16);
  const derive = (key: Uint8Array, salt: Uint8Array, info: Uint8Array, length: number): Buffer =>
    Buffer.from(hkdfSync('sha256', key, salt, info, length));
  return {
    p256dh: own.toString('base64url'),
    auth: auth.toString('base64url'),
    decrypt: (message) => {
      const salt = message.subarray(0, 16);
      const keyLength = message[20] ?? 0;
      const sender = message.subarray(21, 21 + keyLength);
      const sealed = message.subarray(21 + keyLength);
      const key = derive(
        ecdh.computeSecret(sender),
        auth,
        Buffer.concat([Buffer.from('WebPush: info\0'), own, sender]),
        32,
      );
      const content = createDecipheriv(
        'aes-128-gcm',
        derive(key, salt, Buffer.from('Content-Encoding: aes128gcm\0'), 16),
        derive(key, salt, Buffer.from('Content-Encoding: nonce\0'), 12),
      );
      content.setAuthTag(sealed.subarray(-16));
      const padded = Buffer.concat([content.update(sealed.subarray(0, -16)), content.final()]);
      return padded.subarray(0, padded.lastIndexOf(2)).toString();
    },
  };
}
