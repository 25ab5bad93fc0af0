data {
  train = idx("images", "labels")
  x     : f32[6]
  label : class[3]
}
model {
  a = dense(x, 3)
  b = ReLU(x)
  c = LayerNorm(x)
  d = bce_with_logits(x, x)
  e = r2_score(x, x)
  f = hstack([x, x])
  g = sequential(x)
  y = linear(l2_normalize(x), 3)
}
train {
  loss      = nll_loss(y, label)
  optimizer = adam(1e-3)
}
