import { seededRandom } from "../../src/domain/evaluation/SeededRandom.ts"

/**
 * Generates secrets of thirty kinds from a seed, with the right alphabet and length, and valid nowhere. They are assembled here
 * so that no scanner finds one in these files.
 */
export interface Planted {
  readonly kind: string
  /** The secret itself. */
  readonly value: string
  /** A text that contains it, as it occurs in practice. */
  readonly text: string
}

const small = "abcdefghijklmnopqrstuvwxyz"
const large = small.toUpperCase()
const digits = "0123456789"
const alnum = small + large + digits
const hex = `${digits}abcdef`

type Of = (alphabet: string, length: number) => string

const jwt = (of: Of) => `${"eyJ"}hbGciOiJIUzI1NiJ9.${"eyJ"}${of(alnum, 40)}.${of(`${alnum}-_`, 43)}`

/** Each kind: its form, and the ways in which it is written down. */
const kinds: ReadonlyArray<
  readonly [kind: string, make: (of: Of) => string, ways: ReadonlyArray<(v: string) => string>]
> = [
  [
    "AWS access key",
    (of) => `${"AK"}IA${of(`${large}234567`, 16)}`,
    [
      (v) => `aws_access_key_id = ${v}`,
      (v) => `{"AccessKeyId": "${v}"}`,
      (v) => `key ${v} was used`,
      (v) => `export A=${v};`
    ]
  ],
  [
    "AWS secret key",
    (of) => of(`${alnum}+/`, 40),
    [
      (v) => `AWS_SECRET_ACCESS_KEY=${v}`,
      (v) => `aws_secret_access_key = ${v}`,
      (v) => `"SecretAccessKey": "${v}",`,
      (v) => `secretAccessKey: '${v}'`,
      (v) => `  - name: AWS_SECRET_ACCESS_KEY\n    value: ${v}`
    ]
  ],
  [
    "GitHub token",
    (of) => `${"gh"}p_${of(alnum, 36)}`,
    [
      (v) => `https://${v}@github.com/a/b.git`,
      (v) => `GH_TOKEN=${v} gh pr list`,
      (v) => `remote: ${v}`,
      (v) => `token ${v}.`
    ]
  ],
  [
    "GitHub fine-grained",
    (of) => `${"github"}_pat_${of(alnum, 22)}_${of(alnum, 59)}`,
    [(v) => `git clone https://oauth2:${v}@github.com/x`, (v) => `"token": "${v}"`, (v) => v]
  ],
  [
    "GitLab token",
    (of) => `${"gl"}pat-${of(`${alnum}_-`, 19)}7`,
    [
      (v) => `PRIVATE-TOKEN: ${v}`,
      (v) => `curl --header "PRIVATE-TOKEN: ${v}" https://gitlab.example.com`,
      (v) => `//gitlab/:_authToken=${v}`
    ]
  ],
  [
    "npm token",
    (of) => `${"np"}m_${of(alnum, 36)}`,
    [(v) => `//registry.npmjs.org/:_authToken=${v}`, (v) => `NPM_TOKEN=${v}`, (v) => `npm config set token ${v}`]
  ],
  [
    "npm _auth",
    (of) => `${of(alnum, 27)}=`,
    [
      (v) => `_auth=${v}`,
      (v) => `//npm.example.com/:_auth = "${v}"`,
      (v) => `registry=https://x\n_auth=${v}\nemail=a@b.c`
    ]
  ],
  [
    "PyPI token",
    (of) => `${"py"}pi-AgEIcHlwaS5vcmc${of(`${alnum}_-`, 80)}`,
    [(v) => `password = ${v}`, (v) => `twine upload -u __token__ -p ${v}`, (v) => `TWINE_PASSWORD: "${v}"`]
  ],
  [
    "Slack token",
    (of) => `${"xo"}xb-${of(digits, 12)}-${of(digits, 12)}-${of(alnum, 24)}`,
    [(v) => `{"token":"${v}"}`, (v) => `SLACK_BOT_TOKEN=${v}`, (v) => `-d token=${v} https://slack.com/api`]
  ],
  [
    "Slack webhook",
    (of) => of(alnum, 24),
    [
      (v) => `https://hooks.slack.com/services/T0ABCDEF1/B0ABCDEF1/${v}`,
      (v) => `"url": "https:\\/\\/hooks.slack.com/services/T0ABCDEF1/B0ABCDEF1/${v}"`
    ]
  ],
  [
    "Discord token",
    (of) => `M${of(alnum, 23)}.${of(alnum, 6)}.${of(`${alnum}_-`, 38)}`,
    [(v) => `client.login("${v}")`, (v) => `DISCORD_TOKEN=${v}`, (v) => `Authorization: Bot ${v}`]
  ],
  [
    "Stripe key",
    (of) => `${"sk"}_live_${of(alnum, 24)}`,
    [
      (v) => `stripe.api_key = "${v}"`,
      (v) => `curl https://api.stripe.com/v1/charges -u ${v}:`,
      (v) => `STRIPE_KEY: ${v}`
    ]
  ],
  [
    "Twilio auth token",
    (of) => of(hex, 32),
    [
      (v) => `TWILIO_AUTH_TOKEN=${v}`,
      (v) => `authToken: '${v}'`,
      (v) => `twilio login --auth-token=${v}`,
      (v) => `["--auth-token", "${v}"]`
    ]
  ],
  [
    "SendGrid key",
    (of) => `${"S"}G.${of(`${alnum}_-`, 22)}.${of(`${alnum}_-`, 43)}`,
    [(v) => `SENDGRID_API_KEY='${v}'`, (v) => `Authorization: Bearer ${v}`, (v) => `key=${v}`]
  ],
  [
    "OpenAI key",
    (of) => `${"sk"}-proj-${of(`${alnum}_-`, 63)}4`,
    [(v) => `OPENAI_API_KEY=${v}`, (v) => `new OpenAI({ apiKey: "${v}" })`, (v) => `-H "Authorization: Bearer ${v}"`]
  ],
  [
    "Anthropic key",
    (of) => `${"sk"}-ant-api03-${of(`${alnum}_-`, 93)}AA`,
    [(v) => `x-api-key: ${v}`, (v) => `ANTHROPIC_API_KEY="${v}"`, (v) => `{\\"apiKey\\":\\"${v}\\"}`]
  ],
  [
    "Google key",
    (of) => `${"AI"}za${of(`${alnum}_-`, 35)}`,
    [
      (v) => `https://maps.googleapis.com/maps/api/js?key=${v}&callback=init`,
      (v) => `<meta-data android:value="${v}"/>`,
      (v) => `GOOGLE_API_KEY: ${v}`
    ]
  ],
  [
    "Azure account key",
    (of) => `${of(`${alnum}+/`, 86)}==`,
    [
      (v) => `DefaultEndpointsProtocol=https;AccountName=x;AccountKey=${v};EndpointSuffix=core.windows.net`,
      (v) => `az storage blob list --account-key ${v}`,
      (v) => `"azureStorageAccountKey": "${v}"`
    ]
  ],
  [
    "Azure SAS",
    (of) => `${of(alnum, 41)}%2B%3D`,
    [
      (v) => `https://x.blob.core.windows.net/c/f?sv=2022-11-02&sr=b&sig=${v}&se=2027-01-01`,
      (v) => `?se=1&sp=r&sig=${v}`
    ]
  ],
  [
    "AWS signature",
    (of) => of(hex, 64),
    [
      (v) => `https://b.s3.amazonaws.com/k?X-Amz-Expires=900&X-Amz-SignedHeaders=host&X-Amz-Signature=${v}`,
      (v) => `GET /k?X-Amz-Date=20260101T000000Z&X-Amz-Signature=${v} HTTP/1.1`
    ]
  ],
  [
    "DigitalOcean token",
    (of) => `${"do"}p_v1_${of(hex, 64)}`,
    [(v) => `doctl auth init -t ${v}`, (v) => `do_token = "${v}"`, (v) => `DIGITALOCEAN_ACCESS_TOKEN=${v}`]
  ],
  [
    "Hugging Face token",
    (of) => `${"h"}f_${of(small + large, 34)}`,
    [(v) => `huggingface-cli login --token ${v}`, (v) => `HF_TOKEN=${v}`, (v) => `login("${v}")`]
  ],
  [
    "Vault token",
    (of) => `${"hv"}s.${of(`${alnum}_-`, 90)}`,
    [(v) => `export VAULT_TOKEN="${v}"`, (v) => `X-Vault-Token: ${v}`, (v) => `token                ${v}`]
  ],
  [
    "JWT",
    jwt,
    [
      (v) => `Authorization: Bearer ${v}`,
      (v) => `Cookie: session=${v}; theme=dark`,
      (v) => `    token: ${v}`,
      (v) => `localStorage.setItem("jwt", "${v}")`
    ]
  ],
  [
    "private key",
    (of) => `MIIE${of(`${alnum}+/`, 60)}`,
    [
      (v) => `-----BEGIN ${"RSA PRIVATE"} KEY-----\n${v}\n${v}\n-----END ${"RSA PRIVATE"} KEY-----`,
      (v) => `{"private_key": "-----BEGIN ${"PRIVATE"} KEY-----\\n${v}\\n-----END ${"PRIVATE"} KEY-----\\n"}`,
      (v) => `key: |\n  -----BEGIN ${"OPENSSH PRIVATE"} KEY-----\n  ${v}\n  ${v}`
    ]
  ],
  [
    "database password",
    (of) => `${of(alnum, 13)}9${of("!*^", 1)}`,
    [
      (v) => `postgres://app:${v}@db.internal:5432/shop`,
      (v) => `Server=db;Database=x;User Id=sa;Password=${v};Encrypt=true`,
      (v) => `db.internal:5432:shop:app:${v}`,
      (v) => `mysql -u root -p${v} shop`,
      (v) => `PGPASSWORD=${v} psql -h db`,
      (v) => `spring.datasource.password=${v}`
    ]
  ],
  [
    "login password",
    (of) => `${of(small, 7)}${of(digits, 3)}${of(large, 2)}`,
    [
      (v) => `password: ${v}`,
      (v) => `{"username":"ann","password":"${v}"}`,
      (v) => `machine api.example.com login ann password ${v}`,
      (v) => `curl -u ann:${v} https://example.com`,
      (v) => `["curl","-u","ann:${v}","https://example.com"]`,
      (v) => `docker login --password ${v}`,
      (v) => `<password>${v}</password>`,
      (v) => `the password is ${v}.`,
      (v) => `sshpass -p '${v}' ssh ann@host`,
      (v) => `<add key="DbPassword" value="${v}"/>`
    ]
  ],
  [
    "hex secret",
    (of) => of(hex, 64),
    [
      (v) => `SECRET_KEY_BASE=${v}`,
      (v) => `encryption_key = "${v}"`,
      (v) => `private key: ${v}`,
      (v) => `PRIVATE_KEY=0x${v}`,
      (v) => `"hmacSecret": "${v}"`,
      (v) => `signing-key: ${v}`
    ]
  ],
  [
    "docker auth",
    (of) => `${of(alnum, 34)}==`,
    [
      (v) => `{"auths":{"registry.example.com":{"auth":"${v}"}}}`,
      (v) => `Authorization: Basic ${v}`,
      (v) => `{\\"auth\\": \\"${v}\\"}`
    ]
  ],
  [
    "service token",
    (of) => of(alnum, 40),
    [
      (v) => `X-Auth-Token: ${v}`,
      (v) => `--token=${v}`,
      (v) => `["deploy","--api-token","${v}"]`,
      (v) => `client-secret: "${v}"`,
      (v) => `my_api_key = "${v}"`,
      (v) => `SERVICE_TOKEN%3D${v}%26x`,
      (v) => `define('AUTH_KEY', '${v}');`,
      (v) => `accessToken=${v}&x=1`,
      (v) => `os.environ["API_SECRET"] = "${v}"`,
      (v) => `$env:API_TOKEN = "${v}"`
    ]
  ]
]

/** This many secrets of each of the thirty kinds, rotating through the ways to write them. */
export const plantedSecrets = (each = 10, seed = 15): ReadonlyArray<Planted> => {
  const next = seededRandom(seed)
  const of: Of = (alphabet, length) =>
    Array.from({ length }, () => alphabet.charAt(Math.floor(next() * alphabet.length))).join("")
  return kinds.flatMap(([kind, make, ways]) =>
    Array.from({ length: each }, (_, index) => {
      const value = make(of)
      return { kind, value, text: ways[index % ways.length]?.(value) ?? value }
    })
  )
}

const pieceLength = 12

/** The part of a secret that is unique: all JWTs and all PyPI tokens begin alike. */
const ownOf = ({ kind, value }: Planted): string => (kind === "JWT" || kind === "PyPI token" ? value.slice(24) : value)

/** The secrets that a text reveals: twelve consecutive characters of one, or all of a shorter one. */
export const givenAway = (text: string, secrets: ReadonlyArray<Planted>): ReadonlyArray<Planted> => {
  const pieces = new Map<string, Array<Planted>>()
  const found = new Set<Planted>()
  for (const secret of secrets) {
    const own = ownOf(secret)
    if (own.length < pieceLength && text.includes(own)) found.add(secret)
    for (let at = 0; at + pieceLength <= own.length; at += 1) {
      const piece = own.slice(at, at + pieceLength)
      pieces.set(piece, [...(pieces.get(piece) ?? []), secret])
    }
  }
  for (let at = 0; at + pieceLength <= text.length; at += 1) {
    for (const secret of pieces.get(text.slice(at, at + pieceLength)) ?? []) found.add(secret)
  }
  return secrets.filter((secret) => found.has(secret))
}
