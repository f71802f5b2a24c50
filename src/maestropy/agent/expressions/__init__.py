"""Parse and evaluate the expressions of works: JSONPath, jq paths and CEL. Pure and bounded."""
