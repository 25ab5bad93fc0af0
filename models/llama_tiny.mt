# A small Llama: rotary positions, root-mean-square norms, gated layers, and several heads of queries for one of keys.
# Names and shapes of weights are those of Hugging Face's Llama.
param layers    = 4
param heads     = 8  # of queries
param kv_heads  = 2  # of keys and values
param width     = 256
param hidden    = 704           # of the gated layers
param context   = 256           # characters that it sees
param examples  = 32            # of a batch
param deviation = 0.02 in 0..1  # of the initial weights
param lr        = 1e-3 in 0..1  # highest learning rate

data {
  examples = text("tinyshakespeare/input.txt", level = "char")
  split    = 90 / 10
  window   : class[65][context + 1]
}

fn project(x, out) {
  return linear(x, out, bias = false, init = normal(0, deviation))
}

# Positions are in the angles by which queries and keys are turned: their products know distances alone.
fn self_attention(x[t, width]) {
  size   = width / heads
  q_proj = project(x, width)
  k_proj = project(x, kv_heads * size)
  v_proj = project(x, kv_heads * size)
  seen   = attention(rotary(q_proj, heads), rotary(k_proj, kv_heads), v_proj, heads, kv_heads, causal = true)
  o_proj = project(seen, width)
  return o_proj
}

fn feed_forward(x[t, width]) {
  gate_proj = project(x, hidden)
  up_proj   = project(x, hidden)
  down_proj = project(silu(gate_proj) * up_proj, width)
  return down_proj
}

fn block(x) {
  input_layernorm          = rms_norm(x)
  self_attn                = self_attention(input_layernorm)
  h                        = x + self_attn
  post_attention_layernorm = rms_norm(h)
  mlp                      = feed_forward(post_attention_layernorm)
  return h + mlp
}

model {
  token = slice(window, 0, 0, context)
  next  = slice(window, 0, 1, context + 1)
  h     = embedding(token, 65, width, init = normal(0, deviation), name = "model.embed_tokens")
  repeat i in 0..layers {
    h = block(h, name = "model.layers.{i}")
  }
  norm    = rms_norm(h, name = "model.norm")
  lm_head = unembed(norm, weight([65, width], normal(0, deviation), name = "lm_head.weight"))
}

train {
  loss      = cross_entropy(lm_head, next)
  metric    = accuracy(lm_head, next)
  optimizer = adamw(cosine_lr(lr, final = 0.1 * lr, warmup = 100), beta2 = 0.95, weight_decay = 0.1)
  no_decay  = "*norm.weight"
  clip_norm = 1
  precision = bf16
  batch     = examples
  epochs    = 10
}
