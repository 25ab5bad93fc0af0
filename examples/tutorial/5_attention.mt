# Each byte looks back at all before it, and decides how much of each it takes: attention, by hand.
param context = 32
param width   = 48

data {
  examples = text("text.txt", level = "byte")
  split    = 90 / 10
  window   : class[256][context + 1]
}

# A mean of the rows of v, for each row of q, weighted by how well it fits those of k; none that comes later.
fn look_back(q[t, d], k[t, d], v[t, d]) {
  row     = reshape(iota(t), [t, 1])
  fits    = matmul(q, k, transpose_b = true) / sqrt(d)
  weights = softmax(where(iota(t) <= row, fits, -1e9))
  return matmul(weights, v)
}

model {
  h      = embedding(slice(window, 0, 0, context), 256, width) + weight([context, width])
  q      = linear(h, width)
  k      = linear(h, width)
  v      = linear(h, width)
  scores = linear(h + look_back(q, k, v), 256)
}

train {
  loss      = cross_entropy(scores, slice(window, 0, 1, context + 1))
  metric    = accuracy(scores, slice(window, 0, 1, context + 1))
  optimizer = adam(3e-3)
  batch     = 32
  epochs    = 3
}
