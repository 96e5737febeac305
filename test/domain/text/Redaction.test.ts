import { assert, describe, it } from "@effect/vitest"
import type { Kind } from "../../../src/domain/text/Finding.ts"
import { distinctiveSecrets, redact, redacted, redactSpan } from "../../../src/domain/text/Redaction.ts"
import { runsOf, sizeOf } from "../../support/runs.ts"

/** Shaped like secrets, and none: put together here so that no scanner finds one in this file. */
const of = (...parts: ReadonlyArray<string>): string => parts.join("")
const letters = "Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXy4zAb3dEf6hIj9kLm2nOp5qRs8tUv1wXy4z"
const aws = of("AKIA", "Q3EGRNZXW7LHT5MB")
const github = of("ghp_", letters.slice(0, 36))
const google = of("AIza", "SyB-1c2D3e4F5g6H7i8J9k0L1m2N3o4P5q6")
const openai = of("sk-", "proj-", letters.slice(0, 48))
const anthropic = of("sk-", "ant-api03-", letters.slice(0, 40))
const slack = of("xoxb-", "123456789012-abcDEF123456")
const jwt = of("eyJ", "hbGciOiJIUzI1NiJ9", ".eyJ", "zdWIiOiIxMjM0In0", ".", letters.slice(0, 43))
const pem = of("-----BEGIN RSA ", "PRIVATE KEY-----\n", `${letters}\n`.repeat(4), "-----END RSA ", "PRIVATE KEY-----")

describe("redact", () => {
  const secrets: ReadonlyArray<readonly [kind: Kind, text: string, secret: string]> = [
    ["AWS key", `aws_access_key_id = ${aws}`, aws],
    ["secret", `aws_secret_access_key = ${letters.slice(0, 40)}`, letters.slice(0, 40)],
    ["GitHub token", `remote: https://${github}@github.com/a/b`, github],
    ["GitHub token", `${of("github_pat_", letters.slice(0, 22))} x`, letters.slice(0, 22)],
    ["Google key", `?key=${google}&alt=sse`, google],
    ["model key", `OPENAI_API_KEY=${openai}`, openai],
    ["model key", `export KEY="${anthropic}"`, anthropic],
    ["Slack token", `{"token":"${slack}"}`, slack],
    [
      "Slack token",
      of("https://hooks.slack.com/services/", "T0ABCDEF1/B0ABCDEF1/", letters.slice(0, 24)),
      letters.slice(0, 24)
    ],
    ["JWT", `cookie ${jwt};`, jwt],
    ["private key", `before\n${pem}\nafter`, letters],
    ["private key", `{"private_key":"${pem.replaceAll("\n", "\\n")}\\n","x":1}`, letters],
    ["credentials", `Authorization: Bearer ${letters.slice(0, 30)}`, letters.slice(0, 30)],
    ["credentials", `"authorization": "Basic dXNlcjpodW50ZXIy"`, "dXNlcjpodW50ZXIy"],
    ["credentials", `curl -H 'Authorization: abcd1234'`, "abcd1234"],
    ["credentials", `bearer ${letters.slice(0, 20)}`, letters.slice(0, 20)],
    ["password", `password=hunter2`, "hunter2"],
    ["password", "Das Kennwort lautet hunter2.", "hunter2"],
    ["password", "密码是hunter22。请登录", "hunter22"],
    ["password", "パスワード：hunter22です", "hunter22"],
    ["password", "비밀번호는 hunter22 입니다", "hunter22"],
    ["password", "le mot de passe est hunter22, merci", "hunter22"],
    ["password", `"password": "correct horse"`, "correct horse"],
    ["password", `{\\"db_password\\": \\"hunter2\\"}`, "hunter2"],
    ["password", `passwd: 'it"s'`, `it"s`],
    ["password", `password = "hunter`, "hunter"],
    ["password", `"password":"a\\"b"`, `a\\"b`],
    ["password", `postgres://app:hunter2@db:5432/x`, "hunter2"],
    ["secret", `client_secret: ${letters.slice(0, 24)}`, letters.slice(0, 24)],
    ["secret", `"apiKey": "${letters.slice(0, 32)}"`, letters.slice(0, 32)],
    ["secret", `SECRET_KEY=9f86d081884c7d659a2feaa0c55ad015`, "9f86d081884c7d659a2feaa0c55ad015"],
    ["credentials", `["curl", "-H", "Authorization: Token ${letters.slice(0, 20)}"]`, letters.slice(0, 20)],
    ["password", `["curl","--user","ann:${letters.slice(0, 9)}"]`, letters.slice(0, 9)],
    ["password", `mysqldump -p${letters.slice(0, 9)} shop`, letters.slice(0, 9)],
    ["secret", `{"name": "API_TOKEN", "value": "${letters.slice(0, 20)}"}`, letters.slice(0, 20)],
    ["secret", `AUTH_TOKEN%3D${letters.slice(0, 20)}%26x`, letters.slice(0, 20)],
    ["cookie", `Cookie: sid=${letters.slice(0, 24)}; theme=dark`, letters.slice(0, 24)],
    ["signature", `?se=1&sig=${letters.slice(0, 30)}%3D`, letters.slice(0, 30)],
    ["GitHub token", of("gh", "p_", letters.slice(0, 14), "…"), letters.slice(0, 14)],
    ["password", "DB_PASSWORD=a1b2c3;d4e5f6", "d4e5f6"],
    ["password", "x\nspring.datasource.password=Qw1]er2)ty3\ny", "ty3"],
    ["password", "DB_PASSWORD=S3cr3t)word,more}x", "more"],
    ["password", "      MYSQL_ROOT_PASSWORD: Rbk&RCTl02#x", "RCTl02"],
    ["password", `  + password                = "Tr0ub4dor9"`, "Tr0ub4dor9"],
    ["secret", `const API_KEY: string = "${letters.slice(0, 28)}"`, letters.slice(0, 28)],
    ["password", "DB_PASSWORD\u001b[0m=\u001b[33mTr0ub4dor9x\u001b[0m", "Tr0ub"],
    ["password", "\u001b[01;31m\u001b[Kpassword\u001b[m\u001b[K: Tr0ub4dor9x", "Tr0ub"],
    ["password", `{"out":"DB_PASSWORD\\u001b[0m=\\u001b[33mTr0ub4dor9x"}`, "Tr0ub"],
    ["password", "password\u00a0=\u00a0Tr0ub4dor9x", "Tr0ub"],
    ["password", "pass\u200bword:\u2060 Tr0ub\u00ad4dor9x", "4dor9x"],
    ["password", "password：Tr0ub4dor9x", "Tr0ub"],
    ["secret", `const s = process.env.JWT_SECRET || '${letters.slice(0, 32)}'`, letters.slice(0, 32)],
    ["password", `password: process.env.DB_PASS ?? "Yiw9wosa07"`, "Yiw9wosa07"],
    ["password", `os.environ["DB_PASSWORD"] || "Yiw9wosa07"`, "Yiw9wosa07"],
    ["secret", `api_key=SecretStr('${letters.slice(0, 32)}')`, letters.slice(0, 32)],
    ["secret", `Config { api_key: Some("${letters.slice(0, 32)}") }`, letters.slice(0, 32)],
    ["password", `config.setPassword("bLb1lOS85");`, "bLb1lOS85"],
    ["password", `.password("bLb1lOS85")`, "bLb1lOS85"],
    ["secret", `client.setApiKey(b"${letters.slice(0, 32)}")`, letters.slice(0, 32)],
    ["secret", `{'secret': b'${letters.slice(0, 32)}', 'n': 1}`, letters.slice(0, 32)],
    ["password", `PASSWORD = u'Tr0ub4dor9'`, "Tr0ub4dor9"],
    ["password", "ENV DB_PASSWORD maple-summer-44", "maple"],
    ["secret", `setx API_TOKEN "${letters.slice(0, 32)}"`, letters.slice(0, 32)],
    ["secret", `set -gx API_TOKEN ${letters.slice(0, 32)}`, letters.slice(0, 32)],
    ["secret", `#define API_KEY "${letters.slice(0, 32)}"`, letters.slice(0, 32)],
    ["secret", `aws configure set aws_secret_access_key ${letters.slice(0, 40)}`, letters.slice(0, 40)],
    ["secret", `npm config set //registry.npmjs.org/:_authToken ${letters.slice(0, 36)}`, letters.slice(0, 36)],
    ["password", "CREATE USER 'app'@'%' IDENTIFIED BY 'Falcon3109!';", "Falcon3109!"],
    ["password", "ALTER USER app WITH PASSWORD 'xE8sI9U46#x';", "xE8sI9U46#x"],
    ["password", `storePassword "summer2395!"`, "summer2395!"],
    ["password", "requirepass Falcon5153!", "Falcon5153!"],
    ["secret", `gh secret set NPM_TOKEN --body ${letters.slice(0, 36)}`, letters.slice(0, 36)],
    ["password", "keytool -list -storepass Winterorange2024", "Winterorange2024"],
    ["password", "curl -su admin:Winter2024x https://ci/api", "Winter2024x"],
    ["secret", `{"Key":"API_TOKEN","Value":"${letters.slice(0, 40)}"}`, letters.slice(0, 40)],
    ["secret", `{"value":"${letters.slice(0, 40)}","name":"X-Api-Key"}`, letters.slice(0, 40)],
    ["password", `{"Value": "Tr0ub4dor9", "Key": "DB_PASSWORD"}`, "Tr0ub"],
    ["password", `{"password":\n  "Tr0ub4dor9"}`, "Tr0ub"],
    ["password", `<property name="hibernate.connection.password">orange8476!</property>`, "orange8476!"],
    ["secret", `<entry key="api.token">${letters.slice(0, 32)}</entry>`, letters.slice(0, 32)],
    ["password", `{"user":"ann","password": 83920174}`, "83920174"],
    ["password", "card:\n  pin: 4711", "4711"],
    ["password", `const cardPin = "4711"`, "4711"],
    ["password", "the PIN is 4711.", "4711"],
    ["password", `{"otp":492817}`, "492817"],
    ["password", `"passwords": ["Tr0ub4dor9", "x"]`, "Tr0ub4dor9"],
    ["password", `passwords = ['Tr0ub4dor9', 'Falcon3109!']`, "Falcon3109!"],
    ["password", `{\\"pins\\": [4711, 5822]}`, "5822"],
    ["secret", `apiKeys: ["${letters.slice(0, 32)}"]`, letters.slice(0, 32)],
    ["password", "password = <<EOT\nTr0ub4dor9\nEOT", "Tr0ub4dor9"],
    ["secret", `clientKeyData: >-\n  ${letters}\n  ${letters}\n`, letters]
  ]
  for (const [kind, text, secret] of secrets) {
    it(`removes a ${kind}: ${text.slice(0, 32).replaceAll("\n", " ")}`, () => {
      const result = redact(text)
      assert.isFalse(result.includes(secret), result)
      assert.include(result, redacted(kind))
    })
  }

  it("removes a token behind a JSON-escaped line break", () => {
    for (const token of [aws, github, google, openai, slack, jwt]) {
      assert.notInclude(redact(JSON.stringify({ output: `line\n${token}\nline` })), token)
      assert.notInclude(redact(`a%3D${token}`), token)
    }
  })

  it("keeps the text around it", () => {
    assert.strictEqual(redact(`a\npassword=hunter2\nb`), `a\npassword=[redacted: password]\nb`)
    assert.strictEqual(redact(`before\n${pem}\nafter`), `before\n[redacted: private key]\nafter`)
    assert.strictEqual(redact(`{"password":"x","n":1}`), `{"password":"[redacted: password]","n":1}`)
  })

  it("keeps colours and hidden characters around it", () => {
    assert.strictEqual(
      redact("\u200b\u001b[1mDB_PASSWORD\u001b[0m=\u001b[33mTr0ub4dor9x\u001b[0m\nb"),
      "\u200b\u001b[1mDB_PASSWORD\u001b[0m=\u001b[33m[redacted: password]\u001b[0m\nb"
    )
    const plain = "\u001b[32mPASS\u001b[0m src/a.test.ts\u00a0(3 tests)"
    assert.strictEqual(redact(plain), plain)
  })

  it("removes a private key without its end, and no more", () => {
    const torn = `${pem.slice(0, 150)}`
    assert.strictEqual(redact(torn), "[redacted: private key]")
    assert.strictEqual(redact(`${pem.slice(0, 97)}\nthe rest: of it`), "[redacted: private key] rest: of it")
  })

  const innocent: ReadonlyArray<readonly [name: string, text: string]> = [
    ["pass, a verb, after the word user", 'the user said (e1):\n<user_words entry="e1">- x__get: always pass depth=1'],
    ["pass, a verb, before quotes", 'please pass "depth=1" and never pass id=4'],
    ["pass, a verb, after a login", "when you login always pass retries=3"],
    [
      "words for a password of other languages",
      "密码：见保险箱, 密码长度为 12, 密码: docs/login1.md, Passwort: erforderlich, パスワード: SHA256でハッシュ"
    ],
    ["a git hash", "commit 94b82f4d7e0f1a2b3c4d5e6f708192a3b4c5d6e7"],
    ["a digest", "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"],
    ["an integrity", `"integrity": "sha512-${letters}${letters.slice(0, 20)}=="`],
    ["a UUID", "session 0192f0c1-2b3c-7d4e-8f90-a1b2c3d4e5f6"],
    ["an image", `data:image/png;base64,iVBORw0KGgo${letters.repeat(20)}+/${letters}==`],
    ["a class of a page", `<div class="sk-fading-circle-container-inner">`],
    ["a branch", "git checkout feature/sk-improve-the-long-names-of-things"],
    ["a type", "interface Login { password: string; token?: string | undefined }"],
    ["a variable", `password=$DB_PASSWORD token: \${{ secrets.GITHUB_TOKEN }}`],
    ["an expression", `const password = process.env.PASSWORD; token = getToken(request)`],
    ["a schema", `"password": {"type": "string"}`],
    ["the working folder", "PWD=/home/ann/project OLDPWD=/tmp"],
    ["a place holder", "API_KEY=<your key here> password=***"],
    ["a count of tokens", "tokens: 123456, max_output_tokens: 65536"],
    ["prose", "Bearer of good news. The token is counted; a secret of the trade: be short."],
    ["an address", "https://example.com:8080/a@b"],
    ["a public key", "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----"],
    ["a name of a secret", "secretName: my-database-credentials-production"],
    ["a page token", `nextPageToken: "CAUQAAxyzAbc123456789"`],
    ["a key of a cache", `cacheKey: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b"`],
    ["a key of a map", `key: "some-config-name", primaryKey: "id", sortKey=createdAt`],
    ["a text of a page", `"forgotPassword": "Forgot your password?", "password": "Mot de passe"`],
    ["code", "const password = yield* valueOf(agent); pass: /* @__PURE__ */ option(1), password:!0,token:e.token"],
    ["a constant's name", `["DB_USER", "DB_PASSWORD", "DB_HOST"], AUTH_TOKEN = "AUTH_TOKEN"`],
    ["a constant of graphics", "readonly STENCIL_PASS_DEPTH_PASS: 0x0B96;"],
    ["a long name", `n(1448, 1, "must_be_re_exported_using_a_type_only_re_export_when_1_is_enabled_1448")`],
    ["a key of a partition", "PARTITION_KEY=3b0afd20-0d94-4fc6-8474-7b28ea86f286"],
    ["a handle", "token: h_abcdefghij secret=h_k7m2n3p4q5"],
    ["a digest under a name", "docker_token: sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"],
    ["a user of a container", "docker run -u 1000:1000 -p 8080:80 image && git push -u origin main"],
    ["a file of a key", "--password-file /run/secrets/db --key ./server.key token=./token.json"],
    ["a template", `Authorization: Bearer \${token} and Basic <credentials>, {{ password }}`],
    [
      "a default that is a word",
      `label: password || "Required field", setPassword("Password"), setToken("identifier")`
    ],
    [
      "a wrapper of a variable",
      "apiKey: Some(apiKey), secret: SecretStr(value), setPassword(next), token = env.TOKEN ?? next"
    ],
    ["a word of a parser", "SyntaxError: Unexpected token: 'abc123def456gh'"],
    [
      "names of branches",
      "pa-1234-fix-the-very-long-branch-name-of-this-ticket-2 re_1234_rename_all_functions_in_module_x"
    ],
    ["names of topics", "tvly-branch-with-long-name-1-2-3-4 sk-learn-123-something-long-enough-to-match"],
    ["a field beside a word", `the field password "must be set", ENV AUTH_TYPE oauth2, #define TOKEN_END 12`],
    ["a call that reads", `unescapeToken("path~1to~0key")`],
    ["a label of a page", `<string name="password">Password</string> {"password":\n  {"type": "string"}}`],
    ["a pin of a chip", "gpio_pin: 1013, LED_PIN = 13, pin: 7, spin: 12345, pinned: 1234, pin: 1.2.3"],
    ["a list of words", `passwords: ["search", "name"], tokens: [1234, 5678], "keys": ["id", "name"]`],
    ["an environment's reader", `apiKey: process.env.API_KEY, secret: import.meta.env.SECRET, token: os.environ["T"]`]
  ]
  it.each(innocent)("does not touch %s", (_name, text) => assert.strictEqual(redact(text), text))

  it("recognizes a value elsewhere without the stop of its sentence", () => {
    const secret = { kind: "secret" as const, value: "abc123def456ghi789." }
    assert.strictEqual(
      redact("use abc123def456ghi789 here", distinctiveSecrets([secret])),
      "use [redacted: secret] here"
    )
  })

  it("is idempotent", () => {
    for (const [, text] of secrets) assert.strictEqual(redact(redact(text)), redact(text))
  })

  it("recognizes the half of a secret that a cut left", () => {
    const text = `x AUTH_TOKEN=${letters.slice(0, 40)} y`
    for (let end = 14; end <= text.length; end += 1) {
      const shown = redactSpan(text, 0, end)
      assert.notInclude(shown, letters.slice(0, 2), shown)
    }
    assert.strictEqual(redactSpan(text, 0, 2), "x ")
  })

  it("is linear for text that almost matches", () => {
    for (const part of [
      "eyJ",
      "eyJaaaaaaaaa.",
      "-----BEGIN PRIVATE KEY-----",
      "-----BEGIN PRIVATE KEY-----\n-----END ",
      "password",
      "password = ",
      `password="`,
      "password=\\",
      "://a:",
      "://",
      "Bearer ",
      "authorization:",
      "secret_key=",
      "a",
      "A1",
      " ",
      "sk-",
      "token:'a",
      "_-",
      "ghp_",
      "cookie: ;",
      "Cookie: a=b;",
      "secret=AaAa",
      "password is ",
      `password: "\\`,
      "mysql -p",
      "curl -u ",
      "--token ",
      ":5432:a:",
      "x@y:z@",
      "\u001b[0m",
      "\u001b[0;",
      "password\u200b",
      `{"value":"a","name":"password`,
      `"password":\n "a`,
      `key="password">a`,
      "token=A1b2C3d4E5f6G7h8A1b2C3d4E5f6G7h8A1b2C3d4\n",
      `"passwords":[`,
      `"pins":[4711,`,
      `"kty" `,
      "priv:\n ab:cd:ef:\n",
      "<RSAKeyValue><D>",
      "Private-Lines: 1\n",
      "Private-MAC: ab\n",
      "-----END PRIVATE KEY-----\n",
      `${letters}\n`,
      `${letters}\n${":".repeat(60)}\n`,
      `${letters}\nfile.pem:`,
      `\n${" ".repeat(300)}${letters}`,
      "LS0tLS1CRUdJTiBQUklWQVRF\n"
    ]) {
      const text = part.repeat(Math.ceil(runsOf(100_000, 10_000) / part.length))
      assert.isAbove(redact(text).length, 0, part)
    }
  }, 20_000)

  it("takes as many lines of base64 as there are", () => {
    const text = `-----BEGIN PRIVATE KEY-----\n${`${letters}\n`.repeat(sizeOf(150_000, 20_000))}`
    assert.isBelow(redact(text).length, text.length / 100)
  })
})
