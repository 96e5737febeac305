import { assert, describe, it } from "@effect/vitest"
import { hiddenValues, redactHidden, childEnvironment } from "../../../src/domain/text/ChildEnvironment.ts"

describe("the environment of child processes", () => {
  const kept: ReadonlyArray<readonly [name: string, value: string]> = [
    ["PATH", "/usr/local/bin:/usr/bin"],
    ["HOME", "/home/me"],
    ["PWD", "/work"],
    ["OLDPWD", "/"],
    ["LANG", "en_US.UTF-8"],
    ["LS_COLORS", "rs=0:di=01;34:ln=01;36"],
    ["GIT_AUTHOR_NAME", "Somebody"],
    ["KEYBOARD", "us"],
    ["NODE_ENV", "test"],
    ["PASSENGER", "x"],
    ["HTTP_PROXY", "http://proxy:3128"],
    ["HOMEPAGE", "https://example.com/a?b=c"],
    ["INVOCATION_ID", "0123456789abcdef0123456789abcdef"],
    ["EMPTY", ""]
  ]
  it.each(kept)("keeps %s", (name, value) =>
    assert.deepStrictEqual(childEnvironment({ [name]: value }), { [name]: value })
  )

  const leftOutByName: ReadonlyArray<string> = [
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "OPENAI_APIKEY",
    "apiKey",
    "SSH_KEYS",
    "GITHUB_TOKEN",
    "NPM_TOKEN_2",
    "githubToken",
    "CLIENT_SECRET",
    "DB_PASSWORD",
    "PGPASSWORD",
    "MYSQL_PWD",
    "SMTP_PASS",
    "GPG_PASSPHRASE",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "AWS_SECRET_ACCESS_KEY",
    "SSH_AUTH_SOCK",
    "BASIC_AUTH",
    "SESSION_COOKIE",
    "SENTRY_DSN",
    "AZURE_DEVOPS_PAT",
    "WALLET_MNEMONIC",
    "DISCORD_WEBHOOK_URL",
    "STORAGE_SAS"
  ]
  it.each(leftOutByName)("leaves out %s", (name) => assert.deepStrictEqual(childEnvironment({ [name]: "x" }), {}))

  const leftOutByValue: ReadonlyArray<readonly [what: string, value: string]> = [
    ["a Google key", `AIza${"x".repeat(34)}1`],
    ["an OpenAI key", `sk-${"x1".repeat(12)}`],
    ["a Stripe key", `sk_live_${"x1".repeat(10)}`],
    ["a GitHub token", `ghp_${"x1".repeat(18)}`],
    ["a GitLab token", `glpat-${"x1".repeat(10)}`],
    ["a Slack token", `xoxb-${"1".repeat(12)}-x`],
    ["an AWS id", `AKIA${"ABCD2345".repeat(2)}`],
    ["a JWT", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc"],
    ["a private key", "-----BEGIN RSA PRIVATE KEY-----\nx"],
    ["a password in an address", "postgres://me:word@db/x"],
    ["a header", "Bearer abcdefghijk"],
    ["a key within other words", `--key=AIza${"x".repeat(34)}1 --verbose`],
    ["a long random word", "Zm9vYmFyMTIzNDU2Nzg5MGFiY2RlZmdoaWo"]
  ]
  it.each(leftOutByValue)("leaves out %s", (_what, value) =>
    assert.deepStrictEqual(childEnvironment({ PLAIN: value }), {})
  )

  it("keeps exactly what is named", () =>
    assert.deepStrictEqual(childEnvironment({ A_TOKEN: "1", B_TOKEN: "2", C: undefined }, ["A_TOKEN"]), {
      A_TOKEN: "1"
    }))
})

const variables = {
  A_TOKEN: "abcdefgh",
  B_TOKEN: "xabcdefghx",
  SHORT_TOKEN: "1234567",
  SAME_TOKEN: "/home/me/x",
  HOME: "/home/me/x",
  NAMED_TOKEN: "$&-named",
  PLAIN: "plain-value"
}
const cases: ReadonlyArray<readonly [rule: string, text: string, shown: string]> = [
  ["are not shown", "a abcdefgh b\0abcdefgh", "a [redacted: A_TOKEN] b\0[redacted: A_TOKEN]"],
  ["the longer value is replaced first", "xabcdefghx", "[redacted: B_TOKEN]"],
  ["short ones, and those that are given under another name, are", "1234567 /home/me/x", "1234567 /home/me/x"],
  ["what is named is", "$&-named plain-value", "$&-named plain-value"]
]
it.each(cases)("values that no program receives %s", (_rule, text, shown) =>
  assert.strictEqual(redactHidden(text, hiddenValues(variables, ["NAMED_TOKEN"])), shown)
)
