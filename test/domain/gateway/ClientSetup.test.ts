import { assert, it } from "@effect/vitest"
import { type Client, clients, clientSetup } from "../../../src/domain/gateway/ClientSetup.ts"

const addresses: Readonly<Record<Client, ReadonlyArray<string>>> = {
  claude: ["ANTHROPIC_BASE_URL=U"],
  codex: ['base_url = "U/v1"'],
  gemini: ["GOOGLE_GEMINI_BASE_URL=U"],
  pi: ['"anthropic": { "baseUrl": "U" }', '"openai": { "baseUrl": "U/v1" }', '"google": { "baseUrl": "U/v1beta" }'],
  "anthropic-sdk": ['baseURL: "U"'],
  "openai-sdk": ['baseURL: "U/v1"'],
  "google-sdk": ['baseUrl: "U"'],
  effect: ['Anthropic.*apiUrl: "U"', 'OpenAi.*apiUrl: "U/v1"']
}

it.each(clients)("%s is pointed at the path below which it asks", (client) => {
  for (const address of addresses[client]) assert.match(clientSetup(client, "U"), new RegExp(address))
})
