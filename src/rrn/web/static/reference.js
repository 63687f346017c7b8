// Documentation of the API, from openapi.json.

import { get } from "./backend.js";
import { h } from "./dom.js";

const main = document.querySelector("main");
const description = await get("openapi.json");

const resolve = (schema) => (schema.$ref ? description.components.schemas[schema.$ref.split("/").at(-1)] : schema);

function kind(schema) {
  if (schema.$ref) return schema.$ref.split("/").at(-1);
  if (schema.anyOf) return schema.anyOf.map(kind).join(" or ");
  if (schema.enum) return schema.enum.join(", ");
  if (schema.type === "array") return `list of ${schema.prefixItems ? "pairs" : kind(schema.items)}`;
  return schema.type ?? "anything";
}

function caps(schema) {
  const all = [schema, ...(schema.anyOf ?? [])];
  const found = (name) => all.find((part) => part[name] !== undefined)?.[name];
  const parts = [
    found("minimum") !== undefined && `from ${found("minimum")}`,
    found("maximum") !== undefined && `to ${found("maximum").toLocaleString("en")}`,
    found("maxLength") !== undefined && `at most ${found("maxLength").toLocaleString("en")} characters`,
    found("maxItems") !== undefined && `at most ${found("maxItems")} of them`,
    schema.default != null && `default: ${schema.default}`,
  ];
  return parts.filter(Boolean).join(" ");
}

function fields(schema) {
  const rows = Object.entries(schema.properties ?? {}).map(([name, field]) =>
    h("tr", {}, h("td", {}, h("code", {}, name)), h("td", {}, kind(field)), h("td", {}, [field.description, caps(field)].filter(Boolean).join(" "))),
  );
  return h("div", { class: "table" }, h("table", {}, h("thead", {}, h("tr", {}, ["Name", "Type", "Meaning"].map((text) => h("th", { scope: "col" }, text)))), h("tbody", {}, rows)));
}

function operation(path, method, entry) {
  const parts = [h("h2", {}, h("code", {}, `${method.toUpperCase()} ${path}`)), h("p", {}, h("strong", {}, `${entry.summary}. `), entry.description ?? "")];
  if (entry.parameters) {
    const properties = Object.fromEntries(entry.parameters.map((parameter) => [parameter.name, parameter.schema]));
    parts.push(h("h3", {}, "Query"), fields({ properties }));
  }
  const body = entry.requestBody?.content["application/json"].schema;
  if (body) parts.push(h("h3", {}, "Body"), fields(resolve(body)));
  const result = entry.responses["200"].content["application/json"].schema;
  const shape = resolve(result.type === "array" ? result.items : result);
  parts.push(h("h3", {}, result.type === "array" ? "Response: a list of" : "Response"), fields(shape));
  const refusals = Object.entries(entry.responses).filter(([status]) => status !== "200");
  if (refusals.length) parts.push(h("ul", {}, refusals.map(([status, { description: text }]) => h("li", {}, h("code", {}, status), ` ${text}`))));
  return h("section", { class: "operation" }, parts);
}

const sections = Object.entries(description.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, entry]) => operation(path, method, entry)),
);
main.replaceChildren(...description.info.description.split("\n\n").map((text) => h("p", {}, text.replaceAll("`", ""))), ...sections);
