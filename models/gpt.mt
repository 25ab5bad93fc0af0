# The layers of GPT-2. Names and shapes of weights are those of its published files, whose matrices are [in, out].
param deviation = 0.02 in 0..1  # of the initial weights

# Each head looks at the positions up to its own. One matrix makes queries, keys and values of all heads.
fn self_attention(x[t, width], heads, residual_init) {
  c_attn = linear(x, 3 * width, init = normal(0, deviation), bias_init = zeros(), transposed = true)
  q      = slice(c_attn, 1, 0, width)
  k      = slice(c_attn, 1, width, 2 * width)
  v      = slice(c_attn, 1, 2 * width, 3 * width)
  seen   = attention(q, k, v, heads, causal = true)
  c_proj = linear(seen, width, init = residual_init, bias_init = zeros(), transposed = true)
  return c_proj
}

fn feed_forward(x[t, width], residual_init) {
  c_fc   = linear(x, 4 * width, init = normal(0, deviation), bias_init = zeros(), transposed = true)
  c_proj = linear(gelu(c_fc), width, init = residual_init, bias_init = zeros(), transposed = true)
  return c_proj
}

# What a layer reads is normalised, what it adds to is not: the sum goes on from the first layer to the last.
fn block(x, heads, layers) {
  residual_init = normal(0, deviation / sqrt(2 * layers))  # each layer adds twice
  ln_1          = layer_norm(x)
  attn          = self_attention(ln_1, heads, residual_init)
  h             = x + attn
  ln_2          = layer_norm(h)
  mlp           = feed_forward(ln_2, residual_init)
  return h + mlp
}
