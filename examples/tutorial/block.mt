# A layer of a GPT: what a byte takes from those before it, then what it makes of that. What is read is normalised, what it is
# added to is not.
fn block(x[t, width], heads, rate) {
  ln   = layer_norm(x)
  qkv  = linear(ln, 3 * width)
  q    = slice(qkv, 1, 0, width)
  k    = slice(qkv, 1, width, 2 * width)
  v    = slice(qkv, 1, 2 * width, 3 * width)
  seen = linear(attention(q, k, v, heads, causal = true), width)
  h    = x + dropout(seen, rate)
  mlp  = linear(gelu(linear(layer_norm(h), 4 * width)), width)
  return h + dropout(mlp, rate)
}
