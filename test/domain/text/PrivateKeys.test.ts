import { assert, describe, it } from "@effect/vitest"
import { seededRandom } from "../../../src/domain/evaluation/SeededRandom.ts"
import { redact } from "../../../src/domain/text/Redaction.ts"

const next = seededRandom(3)
const of = (alphabet: string, length: number): string =>
  Array.from({ length }, () => alphabet.charAt(Math.floor(next() * alphabet.length))).join("")
const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
const base64 = `${letters}0123456789+/`
const hex = "0123456789abcdef"

/** A key as a file: what stands before and after its lines. The names are put together so that no scanner finds a key here. */
interface KeyFile {
  readonly name: string
  readonly before: ReadonlyArray<string>
  readonly after: ReadonlyArray<string>
  readonly width: number
}

const privateKey = ["PRIVATE", "KEY"].join(" ")
const pem = (name: string, width = 64, headers: ReadonlyArray<string> = []): KeyFile => ({
  name,
  before: [`-----BEGIN ${name}-----`, ...headers],
  after: [`-----END ${name}-----`],
  width
})
const encrypted = ["Proc-Type: 4,ENCRYPTED", "DEK-Info: DES-EDE3-CBC,0123456789ABCDEF", ""]
const putty = (version: number): KeyFile => ({
  name: `PuTTY ${version}`,
  before: [`PuTTY-User-Key-File-${version}: ssh-ed25519`, "Encryption: none", "Private-Lines: 4"],
  after: [`Private-MAC: ${of(hex, 64)}`],
  width: 64
})
const files: ReadonlyArray<KeyFile> = [
  pem(privateKey),
  pem(`RSA ${privateKey}`, 64, encrypted),
  pem(`EC ${privateKey}`),
  pem(`ENCRYPTED ${privateKey}`),
  pem(`OPENSSH ${privateKey}`, 70),
  {
    ...pem(`PGP ${privateKey} BLOCK`, 64, ["Version: GnuPG v2", ""]),
    after: ["=aB3d", `-----END PGP ${privateKey} BLOCK-----`]
  },
  {
    name: "ssh.com",
    before: [`---- BEGIN SSH2 ENCRYPTED ${privateKey} ----`, 'Comment: "mine"'],
    after: [`---- END SSH2 ENCRYPTED ${privateKey} ----`],
    width: 70
  },
  putty(2),
  putty(3)
]

/** How programs print lines of a file. */
const styles: Readonly<Record<string, (lines: ReadonlyArray<string>) => string>> = {
  "as they are": (lines) => lines.join("\n"),
  "with the line ends of Windows": (lines) => lines.join("\r\n"),
  "with numbers": (lines) => lines.map((line, at) => `${String(at + 8).padStart(6)}\t${line}`).join("\n"),
  "as a tool for agents reads them": (lines) =>
    lines.map((line, at) => `${String(at + 98).padStart(5)}→${line}`).join("\n"),
  "as grep finds them": (lines) => lines.map((line, at) => `${at + 1}:${line}`).join("\n"),
  "with the name of the file": (lines) => lines.map((line) => `keys/id.pem:${line}`).join("\n"),
  quoted: (lines) => lines.map((line) => `> ${line}`).join("\n"),
  "as a comment": (lines) => lines.map((line) => `# ${line}`).join("\n"),
  added: (lines) => lines.map((line) => `+${line}`).join("\n"),
  removed: (lines) => lines.map((line) => `-${line}`).join("\n"),
  indented: (lines) => lines.map((line) => `\t  ${line}`).join("\n"),
  "in JSON": (lines) => JSON.stringify({ text: `${lines.join("\n")}\n` }),
  "in JSON within JSON": (lines) => JSON.stringify(JSON.stringify({ text: `${lines.join("\n")}\n` })),
  "as a list": (lines) => JSON.stringify(lines, undefined, 2),
  "as strings that are joined": (lines) => lines.map((line) => `    "${line}\\n" +`).join("\n"),
  "after a command": (lines) => `$ cat key\n${lines.join("\n")}\n$ ls\nkey`
}

/** A piece of a line of the key that a text shows. */
const leakOf = (text: string, lines: ReadonlyArray<string>): string | undefined => {
  for (const line of lines) {
    for (let at = 0; at + 12 <= line.length; at += 1)
      if (text.includes(line.slice(at, at + 12))) return line.slice(at, at + 12)
  }
  return undefined
}

describe("private keys", () => {
  for (const file of files) {
    it(`go, whatever lines of the file a program prints: ${file.name}`, () => {
      const body = [...Array.from({ length: 4 }, () => of(base64, file.width)), `${of(base64, 30)}==`]
      const lines = [...file.before, ...body, ...file.after]
      for (const [style, print] of Object.entries(styles)) {
        for (let from = 0; from < lines.length - 1; from += 1) {
          for (let to = from + 1; to <= lines.length; to += 1) {
            // The short last line without the end has nothing to tell it by.
            if (from >= file.before.length + 4 && to < lines.length) continue
            const text = print(lines.slice(from, to))
            const shown = redact(text)
            assert.isUndefined(leakOf(shown, body), `${style}, lines ${from} to ${to}:\n${text}\n→\n${shown}`)
            assert.strictEqual(redact(shown), shown)
          }
        }
      }
    })
  }

  it("go where a program printed characters, not lines", () => {
    const body = Array.from({ length: 8 }, () => of(base64, 64))
    const text = [`-----BEGIN ${privateKey}-----`, ...body, `-----END ${privateKey}-----`].join("\n")
    for (let from = 0; from < 200; from += 7) {
      const shown = redact(text.slice(from, from + 300))
      // The rest of a line that is shorter than sixteen characters is a word.
      assert.isBelow(shown.replaceAll("[redacted: private key]", "").length, 36, shown)
    }
  })

  it("keep the text around them", () => {
    const tail = [of(base64, 64), `${of(base64, 20)}==`, `-----END ${privateKey}-----`].join("\n")
    assert.strictEqual(redact(`$ tail -3 key.pem\n${tail}\nDone.`), "$ tail -3 key.pem\n[redacted: private key]\nDone.")
    assert.strictEqual(
      redact(`The lines\n\n${of(base64, 64)}\n\nare from it.`),
      "The lines\n\n[redacted: private key]\n\nare from it."
    )
    const putty = `Public-Lines: 1\n${of(base64, 64)}\nPrivate-Lines: 1\n${of(base64, 64)}\nPrivate-MAC: ${of(hex, 64)}\nend`
    assert.match(redact(putty), /^Public-Lines: 1\n[A-Za-z0-9+/]{64}\n\[redacted: private key\]\nend$/)
  })

  it("go around the mark of an earlier redaction", () => {
    const body = Array.from({ length: 3 }, () => of(base64, 61))
    const text = [
      `-----BEGIN ${privateKey}-----`,
      body[0],
      "[redacted: secret]",
      body[1],
      body[2],
      `-----END ${privateKey}-----`
    ]
    assert.isUndefined(leakOf(redact(text.join("\n")), body))
  })

  const value = of(letters, 43)
  const notations: ReadonlyArray<readonly [name: string, text: string, secret: string]> = [
    ["JSON Web Key", `{"kty":"EC","crv":"P-256","x":"${of(letters, 43)}","d":"${value}"}`, value],
    ["JSON Web Key in a string", `{\\"d\\":\\"${value}\\",\\"kty\\":\\"OKP\\"}`, value],
    ["XML", `<RSAKeyValue><Modulus>AQAB</Modulus><D>${value}=</D></RSAKeyValue>`, value],
    ["text of OpenSSL", `prime1:\n    00:${"ab:".repeat(14)}\n    ${"cd:".repeat(15)}\nprime2:`, "cd:cd"],
    ["minisign", `untrusted comment: minisign encrypted secret key\nRWRTY0Iy${value}\n`, value],
    ["signify in JSON", `"untrusted comment: a secret key\\nRWRCSwAA${value}==\\n"`, value],
    ["GnuPG's agent", `(private-key (ecc (curve Ed25519)(q #40AB12#)\n (d #${"5A1B2C3D".repeat(8)}#)))`, "5A1B2C3D"],
    ["DER of RSA in base64", `const key = load("MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcw${value}${value}")`, value],
    ["DER of a short RSA key in base64", `MIICXQIBAAKBgQDW${value}${value}`, value],
    ["DER of a curve in base64", `MHcCAQEEI${value}${value}=`, value],
    ["DER of P-521 in base64", `MIHcAgEBBEIA${value}${value}`, value],
    ["DER of P-521 in PKCS#8 in base64", `MIHuAgEAMBAGByqGSM49AgEGBSuBBAAj${value}${value}`, value],
    ["base64", `key: ${btoa(`-----BEGIN ${privateKey}-----\n${value}\n`)}`, btoa(value).slice(4, -4)],
    [
      "base64 of a PuTTY key",
      btoa(`PuTTY-User-Key-File-3: ssh-rsa\nPrivate-Lines: 1\n${value}\n`),
      btoa(value).slice(4, -4)
    ]
  ]
  it.each(notations)("go in another notation: %s", (_name, text, secret) => {
    const shown = redact(text)
    assert.notInclude(shown, secret)
    assert.include(shown, "[redacted: ")
  })

  const blockOf = (kind: string) =>
    [`-----BEGIN ${kind}-----`, of(base64, 64), of(base64, 64), `${of(base64, 20)}==`, `-----END ${kind}-----`].join(
      "\n"
    )
  const innocent: ReadonlyArray<readonly [name: string, text: string]> = [
    ["a certificate", blockOf("CERTIFICATE")],
    ["a certificate without its head", blockOf("CERTIFICATE").split("\n").slice(1).join("\n")],
    ["the head of a certificate", blockOf("CERTIFICATE").split("\n").slice(0, 3).join("\n")],
    ["a public key in base64", `MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEA${of(letters, 60)}`],
    ["the public key of minisign", `untrusted comment: minisign public key 1A2B\nRWQ${of(letters, 53)}`],
    ["a request for a certificate in JSON", JSON.stringify({ request: blockOf("CERTIFICATE REQUEST") })],
    ["a public key", blockOf("PUBLIC KEY")],
    ["a public key of OpenPGP", blockOf("PGP PUBLIC KEY BLOCK")],
    [
      "a public key of ssh.com",
      `---- BEGIN SSH2 PUBLIC KEY ----\nComment: "x"\n${of(base64, 70)}\n---- END SSH2 PUBLIC KEY ----`
    ],
    ["a public key of OpenSSH", `ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI${of(base64, 43)} ann@host`],
    ["a digest of 64 digits", of(hex, 64)],
    ["a digest of a script", `integrity="sha384-${of(base64, 64)}"`],
    ["a digest on a line of its own", `sha384:${of(base64, 64)}`],
    ["base64 of 76 characters a line", Array.from({ length: 3 }, () => of(base64, 76)).join("\n")],
    ["a long name", "theVeryLongNameOfTheMethodThatChecksWhetherAllOfTheseHaveOneForm"],
    ["an end that is only named", `It ends with the line\n-----END ${privateKey}----- of the file.`],
    ["a JSON Web Key that is public", `{"kty":"EC","crv":"P-256","x":"${of(letters, 43)}","y":"${of(letters, 43)}"}`]
  ]
  it.each(innocent)("are not %s", (_name, text) => assert.strictEqual(redact(text), text))
})
